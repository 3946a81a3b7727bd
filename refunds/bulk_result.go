package refunds

import (
	"errors"

	"github.com/carddata/carddata-go/internal/transport"
)

// deliver hands the next result over, and reports whether to go on.
func (b *bulkRun) deliver(to func(Submission, error) bool) bool {
	r := b.results[0]
	s := r.submission()
	p := b.progress
	p.count(s.Outcome)
	b.report(p) // which may panic: the result is still to be delivered then
	b.progress = p
	b.results[0] = nil
	b.results = b.results[1:]
	return to(s, r.err)
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
		p.Rate = b.client.core.Rate()
		b.o.Progress(p)
	}
}

// stop waits for what is in flight, within the grace period, and hands over the
// results that the loop did not take.
func (b *bulkRun) stop() {
	b.cancel()
	b.halt(transport.Ended(b.ctx))
	for b.inFlight > 0 {
		b.receive(<-b.finished)
	}
	// The input is to end with the caller's context. If that has not ended, the input may
	// well be waiting for its next record.
	if b.records != nil && !b.ended && b.caller.Err() != nil {
		select {
		case panicked := <-b.inputEnd:
			b.inputEnded(panicked)
		case <-b.requestCtx.Done(): // the end of the grace period
		}
	}
	b.cancelRequests()
	b.requests.Wait()
	b.abandon()
	b.rethrow()
}

// rethrow repeats a panic of the caller's code on the loop's goroutine, where the
// caller can recover.
func (b *bulkRun) rethrow() {
	if panicked := b.panicked; panicked != nil {
		b.panicked = nil
		panic(panicked)
	}
}

// abandon hands over the results that are left, even if a function that it calls
// panics on the way.
func (b *bulkRun) abandon() {
	defer func() {
		if len(b.results) > 0 {
			b.o.Progress = nil // it may be what panicked
			b.abandon()
		}
	}()
	for len(b.results) > 0 {
		b.deliver(func(s Submission, err error) bool {
			if b.o.Abandoned != nil {
				b.o.Abandoned(s, err)
			}
			return true
		})
	}
}

func (r *record) submission() Submission {
	s := Submission{Index: r.index, AccountID: r.accountID, RefundID: r.refundID, Outcome: OutcomeAccepted, Receipt: r.receipt, Attempts: r.attempts}
	if failed, ok := errors.AsType[*OutcomeError](r.err); ok {
		s.Outcome = failed.Outcome
	}
	return s
}

// ended is the last result of a submission that did not reach the end of its input.
// It is about no refund, and so has none of the outcomes. Unknown makes it no error after
// which the same call is made again: the records before it would be submitted twice.
func ended(err error) (Submission, error) {
	return Submission{Index: -1}, &Error{Operation: "submit all", Err: transport.WithOutcome(err, transport.OutcomeUnknown)}
}
