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
	over     bool  // because the time of ctx has
	panicked any   // what is to reach the loop's goroutine
	progress BulkProgress
}

// A record is taken from the input, and has its result once it is done.
type record struct {
	outgoing
	index   int
	done    bool
	receipt *Receipt
	err     error

	panicked any
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
		b.rethrow()
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
		defer func() {
			if r.receipt == nil && r.err == nil {
				r.broke(recover())
			}
			b.settled <- r
		}()
		r.receipt, r.err = b.client.send(b.ctx, b.wire, &r.outgoing, nil)
	})
}

// broke settles a record whose request ended in what the caller's own code did,
// such as a token source that panicked. Whether it was sent by then is not known.
func (r *record) broke(panicked any) {
	err := transport.Reason("a function of the caller's panicked, or ended its goroutine")
	r.err = &OutcomeError{Outcome: OutcomeUnknown, RefundID: r.refundID, Err: &Error{Operation: operation, Err: err}}
	if r.panicked = panicked; panicked == nil {
		r.panicked = err
	}
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
	if b.panicked == nil {
		b.panicked = r.panicked
	}
	if b.refusal != nil || b.ctx.Err() != nil || r.panicked != nil {
		return // what the end of ctx did says nothing of the service
	}
	if _, bounded := b.ctx.Deadline(); bounded && isOutOfTime(r.err) {
		outcome, _ := errors.AsType[*OutcomeError](r.err)
		b.over = true
		b.refuse(outcome.Err)
		return
	}
	if b.breaker.settled(r.err) {
		outcome, _ := errors.AsType[*OutcomeError](r.err)
		b.refuse(transport.Reason("the service kept failing, submission is suspended", ErrSuspended, outcome.Err))
	}
	if paused := b.breaker.isOpen(); paused != b.progress.Paused {
		b.progress.Paused = paused
		b.report(b.progress)
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
