package refunds

import (
	"errors"
	"slices"
	"time"

	"github.com/carddata/carddata-go/internal/bulk"
	"github.com/carddata/carddata-go/internal/limit"
)

// receive takes a record back from the network.
func (b *bulkRun) receive(r *record) {
	b.unqueue(r)
	b.progress.Requests += r.attempts
	b.progress.Retries += max(0, r.attempts-1)
	if r.before > 0 {
		b.progress.Retries += min(1, r.attempts)
	}
	m := bulk.Nothing
	if !r.lost {
		if m = meaningOf(r.err, r.settings); m == bulk.Deadline {
			m = bulk.Nothing // it is the deadline of all records
		}
	}
	switch m {
	case bulk.Success:
		b.succeeded++
	case bulk.Account, bulk.Outage:
		b.failure = r.err
	}
	b.client.health.settle(r.place.request, r.accountID, m, r.place.clock.Took(), r.err)
	if b.isSentAgain(r, m) {
		if r.attempts > 0 {
			r.last, _ = errors.AsType[*Error](r.err)
		}
		r.before += r.attempts
		r.attempts, r.cause = 0, r.err
		b.ready = append(b.ready, r)
		b.hold(r)
		return
	}
	if m == bulk.Nothing && r.isUnsent() && b.isOverdue(r) && b.ctx.Err() == nil && !r.lost { // HoldFor ended its waits
		r.before, r.attempts = r.before+r.attempts, 0
		r.err = b.heldTooLong(r)
	}
	b.unblock(r)
	b.complete(r, r.err)
	if limit.NoTurn(r.err) && !r.settings.OwnLimiter {
		b.halt(r.err)
	}
}

func (b *bulkRun) unqueue(r *record) {
	if r.queued {
		r.queued = false
		b.queued--
	}
}

// maxRetryAfter is the longest wait that the service can impose on SubmitAll.
const maxRetryAfter = time.Minute

// isSentAgain reports whether to send a record again. It must be proven not to be recorded. A
// record that keeps failing while others succeed fails because of its content, and others need not
// wait for it.
func (b *bulkRun) isSentAgain(r *record, m bulk.Meaning) bool {
	const ownFault, ownFaultAtTheEnd, others = 8, 3, 10
	switch {
	case b.stopErr != nil, b.ctx.Err() != nil, r.lost, b.isOverdue(r), limit.NoTurn(r.err):
		return false
	case r.place.pause != nil && r.isUnsent(): // the window held it back
		return true
	case m != bulk.Outage || ActionOf(r.err) != ActionResubmit:
		return false
	}
	if failed, ok := errors.AsType[*Error](r.err); ok && (failed.RetryAfter > maxRetryAfter || failed.failure().IsFinal()) {
		return false // the caller must plan for a wait of hours, or for what does not pass
	}
	mostFailures := ownFault
	switch {
	case b.succeeded >= r.behind:
		r.failures++
	case b.isAtTheEnd(r):
		r.failures++
		mostFailures = ownFaultAtTheEnd
	}
	wait := others // and as long again for each other one, so that they are no large share of the requests
	for _, other := range b.ready {
		if other.failures > 0 {
			wait += others
		}
	}
	r.behind = b.succeeded + wait
	return r.failures < mostFailures
}

// isAtTheEnd reports whether no other record can show any more that only r fails, and those that
// are left have failed again after others had succeeded.
func (b *bulkRun) isAtTheEnd(r *record) bool {
	again := func(r *record) bool { return r.failures > 1 }
	return b.loop.Ended && b.loop.Running == 0 && again(r) && !slices.ContainsFunc(b.ready, func(r *record) bool { return !again(r) })
}

func (r *record) isUnsent() bool {
	failed, ok := errors.AsType[*Error](r.err)
	return ok && failed.Outcome == OutcomeNotSent
}

// unblock makes the next record with the same key ready.
func (b *bulkRun) unblock(r *record) {
	behind := b.blocked[r.refundKey]
	if len(behind) == 0 {
		delete(b.blocked, r.refundKey)
		return
	}
	b.ready = append(b.ready, behind[0])
	b.blocked[r.refundKey] = behind[1:]
}

// complete gives a record its result. The result is delivered next, or in input order.
func (b *bulkRun) complete(r *record, err error) {
	r.err, r.body, r.done = r.conclude(err), nil, true
	if !b.o.Ordered {
		b.results = append(b.results, r)
		return
	}
	for len(b.ordered) > 0 && b.ordered[0].done {
		b.results = append(b.results, b.ordered[0])
		b.ordered[0] = nil
		b.ordered = b.ordered[1:]
	}
}

// conclude returns the error of a record's result. If no further attempt was made, the outcome is
// that of the last one.
func (r *record) conclude(err error) error {
	end, ok := errors.AsType[*Error](err)
	if !ok || r.last == nil || r.attempts > 0 || r.lost {
		return err
	}
	failed := *r.last
	failed.RetryAfter, failed.Attempts = end.RetryAfter, end.Attempts
	failed.Err = end.failure().After(r.last.failure())
	return &failed
}

// deliver yields the next result, and reports whether to go on.
func (b *bulkRun) deliver() bool {
	return b.deliverTo(func(s Submission) bool { return b.yield(s, nil) })
}

func (b *bulkRun) deliverTo(to func(Submission) bool) bool {
	r := b.results[0]
	s := r.submission()
	p := b.progress
	p.count(s.Outcome)
	b.report(p) // may panic; the result must still be delivered
	b.progress = p
	b.results[0] = nil
	b.results = b.results[1:]
	return to(s)
}

func (r *record) submission() Submission {
	s := Submission{Index: r.index, Ref: r.ref, AccountID: r.accountID, RefundID: r.refundID, Outcome: OutcomeAccepted, Receipt: r.receipt, Err: r.err, Attempts: r.before + r.attempts}
	if failed, ok := errors.AsType[*Error](r.err); ok {
		s.Outcome = failed.Outcome
	}
	return s
}

func (p *BulkProgress) count(o Outcome) {
	p.Done++
	switch o {
	case OutcomeAccepted:
		p.Accepted++
	case OutcomeRejected:
		p.Rejected++
	case OutcomeNotSent:
		p.NotSent++
	default:
		p.Unknown++
	}
}

func (b *bulkRun) report(p BulkProgress) {
	if b.o.Progress != nil {
		b.o.Progress(p)
	}
}

// reportPause tells the caller that submission pauses or continues. A pause in which it looks for an
// account that works is one only if the first probe fails, too.
func (b *bulkRun) reportPause() {
	state := b.client.health.window.State()
	if state.Paused != b.paused {
		b.paused, b.sought = state.Paused, 0
	}
	p := &b.progress
	paused := state.Paused && (p.Paused || state.Probed || !b.seeks())
	p.Level, p.Reason, p.PausedUntil = state.Level, state.Why, time.Time{}
	if paused {
		p.PausedUntil = b.client.core.Probes(state.Next)
	}
	b.client.health.log()
	if paused != p.Paused {
		p.Paused = paused
		b.report(*p)
	}
}
