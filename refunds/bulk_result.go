package refunds

import (
	"errors"

	"github.com/carddata/carddata-go/internal/transport"
)

// deliver hands the next result over, and tells whether to go on.
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
		b.o.Progress(p)
	}
}

// stop waits for what is in flight, within the grace, and hands over what the
// loop was not there to take.
func (b *bulkRun) stop() {
	b.cancel()
	if !b.over {
		b.over = true
		b.refuse(transport.Ended(b.ctx))
	}
	for b.open > 0 {
		b.settle(<-b.settled)
	}
	b.cut()
	b.requests.Wait()
	b.abandon()
	b.rethrow()
}

// rethrow panics with what a function of the caller panicked with, on the loop's
// goroutine, where the caller can recover.
func (b *bulkRun) rethrow() {
	if panicked := b.panicked; panicked != nil {
		b.panicked = nil
		panic(panicked)
	}
}

// abandon hands over what is left, also when that panics.
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
	s := Submission{Index: r.index, RefundID: r.refundID, Outcome: OutcomeAccepted, Receipt: r.receipt}
	if outcome, ok := errors.AsType[*OutcomeError](r.err); ok {
		s.Outcome, s.Attempts = outcome.Outcome, outcome.Attempts
	} else {
		s.Attempts = r.receipt.Attempts
	}
	return s
}

// ended is the last result of a submission that did not come to the end of its
// input.
func ended(err error) (Submission, error) {
	return Submission{Index: -1, Outcome: OutcomeNotSent},
		&OutcomeError{Outcome: OutcomeNotSent, Err: &Error{Operation: "submit all", Err: err}}
}
