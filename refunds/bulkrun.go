package refunds

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// A bulkRun is one pass of SubmitAll. All but the requests happens on the
// goroutine that ranges over it.
type bulkRun struct {
	ctx      context.Context // ends what has not begun
	cancel   context.CancelFunc
	wire     context.Context // ends the requests
	cut      context.CancelFunc
	requests sync.WaitGroup
	client   *Client
	path     string
	o        BulkOptions
	yield    func(Submission, error) bool

	following map[string][]*record // by the refund_id that they share with one that is ready or in flight
	ready     []*record            // to be sent
	open      int                  // in flight
	settled   chan *record
	inOrder   []*record // if Ordered: what has no result before it that was yielded
	results   []*record // to be yielded

	breaker  breaker
	refusal  error // why nothing more is sent
	over     bool  // because ctx has ended
	progress BulkProgress
}

// A record is taken from the input, and has its result once it is done.
type record struct {
	outgoing
	index   int
	done    bool
	receipt *Receipt
	err     error
}

func newBulk(ctx context.Context, c *Client, path string, o BulkOptions, yield func(Submission, error) bool) *bulkRun {
	o.Concurrency = cmp.Or(o.Concurrency, defaultConcurrency)
	o.Grace = cmp.Or(o.Grace, defaultGrace)
	o.GiveUpAfter = cmp.Or(o.GiveUpAfter, defaultGiveUpAfter)
	b := &bulkRun{
		client: c, path: path, o: o, yield: yield,
		following: map[string][]*record{},
		settled:   make(chan *record, o.Concurrency),
		breaker:   breaker{giveUpAfter: o.GiveUpAfter},
	}
	b.ctx, b.cancel = context.WithCancel(ctx)
	b.wire, b.cut = context.WithCancel(context.WithoutCancel(ctx))
	b.requests.Go(func() {
		<-b.ctx.Done()
		grace := time.NewTimer(o.Grace)
		defer grace.Stop()
		select {
		case <-grace.C:
			b.cut()
		case <-b.wire.Done():
		}
	})
	return b
}

// add takes one record. It tells whether to go on.
func (b *bulkRun) add(r *Refund) bool {
	taken := &record{index: b.progress.Taken, outgoing: outgoing{refundID: r.id(), path: b.path}}
	b.progress.Taken++
	if b.o.Ordered {
		b.inOrder = append(b.inOrder, taken)
	}
	var err error
	if taken.body, err = r.encode(); err == nil {
		err = b.refusal
	}
	following, busy := b.following[taken.refundID]
	switch {
	case err != nil:
		b.complete(taken, nil, notSent(taken.refundID, err))
	case busy:
		b.following[taken.refundID] = append(following, taken)
	default:
		b.following[taken.refundID] = nil
		b.ready = append(b.ready, taken)
	}
	return b.advance(false)
}

// advance sends and yields as far as it can without more input; in the end, until
// all is done. It tells whether to go on.
func (b *bulkRun) advance(all bool) bool {
	for {
		b.collect()
		if b.ctx.Err() != nil && !b.over {
			b.over = true
			b.refuse(transport.Ended(b.ctx))
		}
		held := b.progress.Taken - b.progress.Done
		switch more := !all && !b.over; {
		case len(b.ready) > 0 && b.maySend():
			b.send()
		case more && b.maySend() && len(b.results) < b.o.Concurrency && held < maxWaiting+b.o.Concurrency:
			return true
		case len(b.results) > 0:
			if !b.deliver(b.yield) {
				return false
			}
		case held > 0 || more:
			b.await()
		case b.over:
			b.yield(ended(b.refusal))
			return false
		default:
			return true
		}
	}
}

// maySend tells whether there is a place for one more refund. While the breaker
// is open, there is one place.
func (b *bulkRun) maySend() bool {
	if b.breaker.isOpen() && b.refusal == nil {
		return b.open == 0 && b.breaker.due() == 0
	}
	return b.open < b.o.Concurrency
}

func (b *bulkRun) send() {
	r := b.ready[0]
	b.ready = b.ready[1:]
	b.open++
	b.breaker.sent()
	b.requests.Go(func() {
		r.receipt, r.err = b.client.send(b.ctx, b.wire, &r.outgoing, nil)
		b.settled <- r
	})
}

// await waits until something settles, the next probe is due, or ctx ends.
func (b *bulkRun) await() {
	var due <-chan time.Time
	if b.open == 0 {
		timer := time.NewTimer(b.breaker.due())
		defer timer.Stop()
		due = timer.C
	}
	done := b.ctx.Done()
	if b.over {
		done = nil
	}
	select {
	case r := <-b.settled:
		b.settle(r)
	case <-due:
	case <-done:
	}
}

// collect settles what has settled already.
func (b *bulkRun) collect() {
	for len(b.settled) > 0 {
		b.settle(<-b.settled)
	}
}

func (b *bulkRun) settle(r *record) {
	b.open--
	if following := b.following[r.refundID]; len(following) > 0 {
		b.ready = append(b.ready, following[0])
		b.following[r.refundID] = following[1:]
	} else {
		delete(b.following, r.refundID)
	}
	attempts := r.submission().Attempts
	b.progress.Requests += attempts
	b.progress.Retries += max(0, attempts-1)
	b.complete(r, r.receipt, r.err)
	if b.refusal != nil || b.ctx.Err() != nil {
		return // what the end of ctx did says nothing of the service
	}
	if b.breaker.settled(r.err) {
		outcome, _ := errors.AsType[*OutcomeError](r.err)
		b.refuse(transport.Reason("the service kept failing, submission is suspended", ErrSuspended, outcome.Err))
	}
	if paused := b.breaker.isOpen(); paused != b.progress.Paused {
		b.progress.Paused = paused
		b.report()
	}
}

// refuse ends sending. What is ready, or follows something, is not sent.
func (b *bulkRun) refuse(err error) {
	b.refusal = err
	unsent := b.ready
	for _, following := range b.following {
		unsent = append(unsent, following...)
	}
	b.ready = nil
	clear(b.following)
	slices.SortFunc(unsent, func(x, y *record) int { return x.index - y.index })
	for _, r := range unsent {
		b.complete(r, nil, notSent(r.refundID, err))
	}
}

// complete gives a record its result, which is yielded now or in its turn.
func (b *bulkRun) complete(r *record, receipt *Receipt, err error) {
	r.receipt, r.err, r.body, r.done = receipt, err, nil, true
	if !b.o.Ordered {
		b.results = append(b.results, r)
		return
	}
	for len(b.inOrder) > 0 && b.inOrder[0].done {
		b.results = append(b.results, b.inOrder[0])
		b.inOrder[0] = nil
		b.inOrder = b.inOrder[1:]
	}
}

// deliver hands the next result over, and tells whether to go on.
func (b *bulkRun) deliver(to func(Submission, error) bool) bool {
	r := b.results[0]
	b.results[0] = nil
	b.results = b.results[1:]
	s := r.submission()
	b.progress.Done++
	switch s.Outcome {
	case OutcomeAccepted:
		b.progress.Accepted++
	case OutcomeRejected:
		b.progress.Rejected++
	case OutcomeNotSent:
		b.progress.NotSent++
	default:
		b.progress.Unknown++
	}
	b.report()
	return to(s, r.err)
}

func (b *bulkRun) report() {
	if b.o.Progress != nil {
		b.o.Progress(b.progress)
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
