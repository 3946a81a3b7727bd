package refunds

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/carddata/carddata-go/internal/await"
	"github.com/carddata/carddata-go/internal/bulk"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/flow"
	"github.com/carddata/carddata-go/internal/limit"
	"github.com/carddata/carddata-go/internal/transport"
)

// A bulkRun is one pass of SubmitAll. Everything runs on the goroutine that ranges over it,
// except the attempts.
type bulkRun struct {
	caller         context.Context
	ctx            context.Context // the caller's, until stop; no request starts after its end
	cancel         context.CancelFunc
	requestCtx     context.Context // outlives ctx by the grace period
	cancelRequests context.CancelFunc
	client         *Client
	o              BulkOptions
	settings       *transport.Settings
	yield          func(Submission, error) bool

	pool     *bulk.Pool
	waiting  atomic.Int64 // records that wait to be sent again
	accepted atomic.Int64
	blocked  map[refundKey][]*record // those that wait behind one with the same key, in the pool
	results  []*record               // to be yielded
	failing  time.Time               // the first failure since the service worked; zero: it works
	failure  error                   // the last one
	stopErr  error                   // why no record is taken or sent any more; nil while running
	progress BulkProgress
}

func newBulk(ctx context.Context, c *Client, o BulkOptions, settings *transport.Settings, yield func(Submission, error) bool) *bulkRun {
	o.Concurrency = cmp.Or(o.Concurrency, defaultConcurrency)
	o.Grace = cmp.Or(o.Grace, defaultGrace)
	o.GiveUpAfter = cmp.Or(o.GiveUpAfter, defaultGiveUpAfter)
	b := &bulkRun{
		caller: ctx, client: c, o: o, settings: settings, yield: yield,
		pool: bulk.NewPool(o.Concurrency), blocked: map[refundKey][]*record{},
	}
	b.ctx, b.cancel = context.WithCancel(ctx)
	b.requestCtx, b.cancelRequests = context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(b.ctx, func() { time.AfterFunc(max(0, o.Grace), b.cancelRequests) })
	return b
}

// run processes all input, unless something ends the submission early.
func (b *bulkRun) run(items iter.Seq[Item]) {
	if !b.advance(false) {
		return
	}
	for i := range items {
		if b.add(b.take(i)); !b.advance(false) {
			return
		}
	}
	b.advance(true)
}

// add starts a record, or lets it wait behind one with the same key.
func (b *bulkRun) add(r *record) {
	r.index = b.progress.Taken
	b.progress.Taken++
	behind, busy := b.blocked[r.refundKey]
	switch {
	case r.err != nil:
		b.complete(r, r.failure(r.err))
	case busy:
		b.blocked[r.refundKey] = append(behind, r)
	default:
		b.blocked[r.refundKey] = nil
		b.start(r)
	}
}

// advance receives and delivers results until there is room for the next record, or until every
// record has its result if the input has ended. It reports whether to go on.
func (b *bulkRun) advance(ended bool) bool {
	for {
		b.pool.Receive()
		b.pool.Rethrow()
		b.reportState()
		if b.caller.Err() != nil { // b.ctx ends a moment later
			b.halt(fault.Ended(b.caller))
		}
		b.giveUp()
		switch {
		case len(b.results) > 0:
			if !b.deliver() {
				return false
			}
		case b.stopErr == nil && !ended && b.hasRoom(), b.stopErr == nil && ended && b.pool.Running == 0:
			return true
		case b.stopErr != nil && b.pool.Running == 0:
			b.yield(endedBy(b.stopErr))
			return false
		default:
			b.pool.Wait(bulk.At(b.giveUpTime()), b.doneUnlessStopped())
		}
	}
}

func (b *bulkRun) doneUnlessStopped() <-chan struct{} {
	if b.stopErr != nil {
		return nil
	}
	return b.ctx.Done()
}

// hasRoom reports whether to take another record, because it can be sent.
func (b *bulkRun) hasRoom() bool {
	return b.pool.HasRoom() && b.progress.Taken-b.progress.Done < b.o.Concurrency+maxWaiting
}

// start sends a record, and sends it again as long as that is proven to be safe and may help.
func (b *bulkRun) start(r *record) {
	b.pool.Start(func(slot *bulk.Slot) func() {
		for {
			r.receipt, r.err = b.client.send(b.ctx, b.requestCtx, &r.encodedRefund, r.settings)
			if !b.mayHelp(r) || b.worksForOthers(r) {
				break
			}
			failed := r.err
			b.pool.Post(func() { b.fails(failed) })
			if b.wait(slot, r) != nil {
				r.held = true
				break
			}
			r.triesAgain()
		}
		return func() { b.receive(r) }
	}, func() {
		r.err = r.failure(bulk.ErrPanicked)
		b.receive(r)
	})
}

// worksForOthers reports whether a record fails alone: it was refused again and again, or too many wait like it,
// while the service accepts others.
func (b *bulkRun) worksForOthers(r *record) bool {
	if limit.IsPause(r.err) && !limit.IsPauseOfOne(r.err) || errors.Is(r.err, ErrSuspended) {
		return false
	}
	accepted := b.accepted.Load()
	if r.rounds == 0 {
		r.others = accepted
	}
	if r.attempts > 0 {
		r.rounds++
	}
	// A 429 may be the limit of an account, whose accepted records say nothing of this one.
	tooMany := b.waiting.Load() >= maxWaiting && !errors.Is(r.err, ErrRateLimited)
	return accepted > r.others && (r.rounds >= mostRounds || tooMany)
}

// mostRounds is how often a record is sent again while others are accepted.
const mostRounds = 10

// mayHelp reports whether to send a record again. It must be proven not to be recorded, and what kept it from
// being recorded must pass by itself.
func (b *bulkRun) mayHelp(r *record) bool {
	failed, ok := errors.AsType[*Error](r.err)
	switch {
	case !ok, ActionOf(r.err) != ActionResubmit, b.ctx.Err() != nil, limit.NoTurn(r.err):
		return false
	case failed.RetryAfter > transport.MaxRetryAfter, failed.failure().IsFinal():
		return false // the caller must plan for a wait of hours, or for what does not pass
	case errors.Is(r.err, ErrLocalLimit) && r.own && r.settings.OwnLimiter, errors.Is(r.err, ErrCredential) && r.own && r.settings.OwnCredential:
		return false // it is the item's own
	}
	return limit.IsPause(r.err) || errors.Is(r.err, ErrSuspended) || failed.failure().Scope() == fault.OfOutage
}

// wait waits before a record is sent again. Others have its slot meanwhile, unless so many wait that no further record
// is taken, or the service is down.
func (b *bulkRun) wait(slot *bulk.Slot, r *record) error {
	if pause, ok := errors.AsType[*flow.Pause](r.err); ok {
		return await.Sleep(b.ctx, time.Until(pause.Until), pause.Over)
	}
	failed, _ := errors.AsType[*Error](r.err)
	wait := b.client.core.Backoff(b.ctx, r.tries, errors.Is(r.err, ErrRateLimited), failed.RetryAfter)
	if b.waiting.Load() >= maxWaiting {
		return await.Sleep(b.ctx, wait, nil)
	}
	b.waiting.Add(1)
	defer b.waiting.Add(-1)
	return slot.Wait(b.ctx, wait, nil)
}

// fails notes a failure of the service.
func (b *bulkRun) fails(err error) {
	if b.failing.IsZero() {
		b.failing = time.Now()
	}
	if !errors.Is(err, ErrSuspended) {
		b.failure = err
	}
}

// receive takes a record back from the pool.
func (b *bulkRun) receive(r *record) {
	b.progress.Requests += r.before + r.attempts
	b.progress.Retries += max(0, r.before+r.attempts-1)
	switch s := r.submission(); {
	case s.Outcome == OutcomeAccepted:
		b.accepted.Add(1)
		b.failing = time.Time{}
	case s.Outcome == OutcomeRejected && s.Action() != ActionFixSetup:
		b.failing = time.Time{}
	default:
		b.fails(r.err)
	}
	if r.held && b.stopErr != nil {
		r.triesAgain()
		r.err = r.failure(fault.NewError(b.stopErr.Error(), b.stopErr, errors.Unwrap(r.err)))
	}
	b.complete(r, r.err)
	if behind := b.blocked[r.refundKey]; len(behind) > 0 {
		b.blocked[r.refundKey] = behind[1:]
		b.start(behind[0])
	} else {
		delete(b.blocked, r.refundKey)
	}
	if limit.NoTurn(r.err) && !(r.own && r.settings.OwnLimiter) {
		b.halt(errors.Unwrap(r.err))
	}
}

// complete gives a record its result.
func (b *bulkRun) complete(r *record, err error) {
	r.conclude(err)
	b.results = append(b.results, r)
}

// deliver yields the next result, and reports whether to go on.
func (b *bulkRun) deliver() bool {
	return b.deliverTo(func(s Submission) bool { return b.yield(s, nil) })
}

func (b *bulkRun) deliverTo(to func(Submission) bool) bool {
	s := b.results[0].submission()
	p := b.progress
	p.count(s.Outcome)
	b.report(p) // may panic; the result must still be delivered
	b.progress = p
	b.results[0] = nil
	b.results = b.results[1:]
	return to(s)
}

func (b *bulkRun) report(p BulkProgress) {
	if b.o.Progress != nil {
		b.o.Progress(p)
	}
}

// reportState tells the caller that submission pauses or goes on.
func (b *bulkRun) reportState() {
	was := b.progress.Paused()
	b.progress.Stats = b.client.Stats()
	b.client.logState()
	if b.progress.Paused() != was {
		b.report(b.progress)
	}
}

// giveUpTime is when to give up; zero: the service works.
func (b *bulkRun) giveUpTime() time.Time {
	if b.failing.IsZero() || b.o.GiveUpAfter < 0 || b.stopErr != nil {
		return time.Time{}
	}
	return b.failing.Add(b.o.GiveUpAfter)
}

// giveUp ends the submission when nothing has worked for so long, or at once if nothing has worked yet and
// somebody has to correct the setup.
func (b *bulkRun) giveUp() {
	switch end := b.giveUpTime(); {
	case b.progress.Paused() && b.accepted.Load() == 0 && ActionOf(b.failure) == ActionFixSetup:
		b.halt(fault.NewError("the setup is wrong", b.cause()))
	case !end.IsZero() && !time.Now().Before(end):
		b.halt(fault.NewError("the service keeps failing, submission is suspended", ErrSuspended, b.cause()))
	}
}

// cause is why the service fails, without the outcome of a refund.
func (b *bulkRun) cause() error {
	if failed, ok := errors.AsType[*Error](b.failure); ok {
		return fault.Unwrap(failed.failure())
	}
	return b.failure
}

// halt stops taking and sending. The first reason counts: it is the error of every unsent
// record.
func (b *bulkRun) halt(err error) {
	if b.stopErr != nil {
		return
	}
	b.stopErr = err
	b.cancel()
	for _, behind := range b.blocked {
		for _, r := range behind {
			b.complete(r, r.failure(err))
		}
	}
	clear(b.blocked)
}

// stop waits for the requests in flight, up to the grace period, and gives Abandoned the
// results that the loop did not take.
func (b *bulkRun) stop() {
	b.cancel()
	b.halt(fault.Ended(b.ctx))
	b.pool.Close()
	b.cancelRequests()
	b.abandon()
	b.pool.Rethrow()
}

// abandon gives Abandoned the remaining results, even if a function that it calls panics. Without it, the log
// has how many were lost.
func (b *bulkRun) abandon() {
	defer func() {
		if len(b.results) > 0 {
			b.o.Progress = nil // it may be the one that panicked
			b.abandon()
		}
	}()
	var lost BulkProgress
	for len(b.results) > 0 {
		b.deliverTo(func(s Submission) bool {
			if b.o.Abandoned != nil {
				b.o.Abandoned(s)
			} else {
				lost.count(s.Outcome)
			}
			return true
		})
	}
	if lost.Done > 0 {
		b.client.pauses.Event(slog.LevelWarn, "results lost", slog.Int("accepted", lost.Accepted), slog.Int("rejected", lost.Rejected), slog.Int("not_sent", lost.NotSent), slog.Int("unknown", lost.Unknown))
	}
}

// endedBy is the error that ends the results early. It belongs to no refund, so it matches no outcome.
func endedBy(err error) (Submission, error) {
	return Submission{}, &Error{Operation: submitAll, Err: err}
}
