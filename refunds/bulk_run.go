package refunds

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/carddata/carddata-go/internal/breaker"
	"github.com/carddata/carddata-go/internal/transport"
)

// A bulkRun is one pass of SubmitAll. All but the requests happens on the
// goroutine that ranges over it.
type bulkRun struct {
	caller         context.Context
	ctx            context.Context // of the caller until stop: no request starts once it has ended
	cancel         context.CancelFunc
	requestCtx     context.Context // outlives ctx by the grace period
	cancelRequests context.CancelFunc
	requests       sync.WaitGroup
	client         *Client
	o              BulkOptions
	opts           []Option
	yield          func(Submission, error) bool

	records  chan *record            // of the input, with ReadAhead
	inputEnd chan any                // why the input panicked, or nil, once it has returned
	ready    []*record               // to be sent
	blocked  map[refundKey][]*record // behind the one with this key that is ready or in flight
	inFlight int
	sent     int          // records
	failed   int          // the first of them to fail since a success closed the breaker; 0: none
	latest   int          // the last of them to fail
	finished chan *record // back from the network
	ordered  []*record    // if Ordered: all records from the first without a result on
	results  []*record    // to be delivered

	breaker  breaker.Breaker
	accounts accounts
	stopErr  error // why nothing more is sent, nil while something may be
	stopped  bool  // nothing more is taken from the input either
	ended    bool  // the input has no more
	panicked any   // a panic of the caller's code, for the loop's goroutine
	progress BulkProgress
}

func newBulk(ctx context.Context, c *Client, o BulkOptions, opts []Option, yield func(Submission, error) bool) *bulkRun {
	o.Concurrency = cmp.Or(o.Concurrency, defaultConcurrency)
	o.Grace = cmp.Or(o.Grace, defaultGrace)
	o.GiveUpAfter = cmp.Or(o.GiveUpAfter, defaultGiveUpAfter)
	b := &bulkRun{
		caller: ctx, client: c, o: o, opts: opts, yield: yield,
		blocked:  map[refundKey][]*record{},
		finished: make(chan *record, o.Concurrency),
		breaker: breaker.Breaker{
			GiveUpAfter: o.GiveUpAfter,
			Jitter:      func(below time.Duration) time.Duration { return c.core.Jitter(ctx, below) },
		},
	}
	b.ctx, b.cancel = context.WithCancel(ctx)
	b.requestCtx, b.cancelRequests = context.WithCancel(context.WithoutCancel(ctx))
	b.requests.Go(func() {
		<-b.ctx.Done()
		defer time.AfterFunc(o.Grace, b.cancelRequests).Stop()
		<-b.requestCtx.Done()
	})
	return b
}

// run takes the input to its end, unless something ends the submission before.
func (b *bulkRun) run(items iter.Seq[Item]) {
	if !b.advance() {
		return
	}
	if b.o.ReadAhead {
		b.read(items)
	} else {
		for i := range items {
			if b.add(b.take(i)); !b.advance() {
				return
			}
		}
		b.ended = true
	}
	b.advance()
}

// add puts one record in its place. Its refund_id may have to wait for another one
// of the same account.
func (b *bulkRun) add(r *record) {
	r.index = b.progress.Taken
	b.progress.Taken++
	if b.o.Ordered {
		b.ordered = append(b.ordered, r)
	}
	err := cmp.Or(r.err, b.stopErr)
	if err == nil && b.accounts.add(r.accountID) {
		b.breaker.Settled(false)
		b.reportPause()
	}
	behind, busy := b.blocked[r.refundKey]
	switch {
	case err != nil:
		b.complete(r, r.failure(err))
	case busy:
		b.blocked[r.refundKey] = append(behind, r)
	default:
		b.blocked[r.refundKey] = nil
		b.ready = append(b.ready, r)
	}
}

// advance sends, receives and delivers until it needs a record of the input that
// only its caller can bring, or until every record has its result and there are no
// more. It reports whether to go on.
func (b *bulkRun) advance() bool {
	for {
		for len(b.finished) > 0 {
			b.receive(<-b.finished)
		}
		b.rethrow()
		if b.ctx.Err() != nil {
			b.halt(transport.Ended(b.ctx))
		}
		more := !b.ended && !b.stopped
		take := more && b.mayTake()
		switch {
		case len(b.ready) > 0 && b.maySend():
			b.send()
		case take && b.records == nil:
			return true
		case take && b.takeAhead():
		case len(b.results) > 0:
			if !b.deliver(b.yield) {
				return false
			}
		case more || b.held() > 0:
			b.wait(take)
		case b.stopped:
			b.yield(ended(b.stopErr))
			return false
		default:
			return true
		}
	}
}

// held is the number of records without a result.
func (b *bulkRun) held() int { return b.progress.Taken - b.progress.Done }

// maySend reports whether one more request may be in flight. After stopSending it
// is only asked for the sake of the input, the rest of which is taken unsent.
func (b *bulkRun) maySend() bool {
	if b.stopErr != nil {
		return b.inFlight < b.o.Concurrency
	}
	return b.inFlight < b.breaker.Limit(b.o.Concurrency)
}

// mayTake reports whether there is room for one more record. It is taken to be sent
// at once, or to find out whether the failure of an account is that of all.
func (b *bulkRun) mayTake() bool {
	return (b.maySend() || b.breaker.Open() && b.accounts.isOne()) &&
		len(b.results) < b.o.Concurrency && b.held() < maxWaiting+b.o.Concurrency
}

// takeAhead takes what the input's goroutine has ready. It does not wait.
func (b *bulkRun) takeAhead() bool {
	select {
	case r := <-b.records:
		b.add(r)
	case panicked := <-b.inputEnd:
		b.inputEnded(panicked)
	default:
		return false
	}
	return true
}

func (b *bulkRun) inputEnded(panicked any) {
	b.ended = true
	b.panicked = cmp.Or(b.panicked, panicked)
}

func (b *bulkRun) send() {
	r := b.ready[0]
	b.ready = b.ready[1:]
	b.inFlight++
	b.sent++
	r.sent = b.sent
	b.breaker.Sent()
	b.requests.Go(func() {
		defer func() {
			if r.receipt == nil && r.err == nil { // a panic, or the end of the goroutine
				r.panicked = cmp.Or[any](recover(), errPanicked)
				r.err = r.failure(errPanicked)
			}
			b.finished <- r
		}()
		r.receipt, r.err = b.client.send(b.ctx, b.requestCtx, &r.encodedRefund, r.options)
	})
}

var errPanicked = transport.NewError("a function of the caller's panicked, or ended its goroutine")

// wait waits for a response, the next probe, the end of ctx, or, if one may be taken,
// a record.
func (b *bulkRun) wait(take bool) {
	var records chan *record
	var inputEnd chan any
	if take {
		records, inputEnd = b.records, b.inputEnd
	}
	var due <-chan time.Time
	if b.inFlight == 0 && (len(b.ready) > 0 || !take) {
		due = time.After(b.breaker.Delay())
	}
	done := b.ctx.Done()
	if b.stopped {
		done = nil
	}
	select {
	case r := <-b.finished:
		b.receive(r)
	case r := <-records:
		b.add(r)
	case panicked := <-inputEnd:
		b.inputEnded(panicked)
	case <-due:
	case <-done:
	}
}

// receive takes a record back from the network.
func (b *bulkRun) receive(r *record) {
	b.inFlight--
	if behind := b.blocked[r.refundKey]; len(behind) > 0 {
		b.ready = append(b.ready, behind[0])
		b.blocked[r.refundKey] = behind[1:]
	} else {
		delete(b.blocked, r.refundKey)
	}
	b.progress.Requests += r.attempts
	b.progress.Retries += max(0, r.attempts-1)
	b.complete(r, r.err)
	if b.panicked == nil {
		b.panicked = r.panicked
	}
	if b.stopErr != nil || b.ctx.Err() != nil || r.panicked != nil {
		return // what the end of ctx did says nothing about the service
	}
	if transport.NoTurn(r.err) && !transport.HasLimiter(r.own) {
		b.halt(errors.Unwrap(r.err))
		return
	}
	failure := scopeOf(r)
	switch {
	case failure != ofRecord:
		b.failed, b.latest = min(cmp.Or(b.failed, r.sent), r.sent), max(b.latest, r.sent)
	case r.sent < b.failed || b.breaker.Open() && r.sent < b.latest:
		return // it says how the service was before it failed
	default:
		b.failed = 0
	}
	repeated := b.accounts.repeats(r.accountID, failure)
	var giveUp bool
	switch {
	case repeated && !b.breaker.Open():
		return
	case repeated && b.accounts.worked:
		giveUp = b.breaker.Repeated()
	default:
		giveUp = b.breaker.Settled(failure != ofRecord)
	}
	if giveUp {
		b.stopSending(transport.NewError("the service kept failing, submission is suspended", ErrSuspended, errors.Unwrap(r.err)))
	}
	b.reportPause()
}

// reportPause tells the caller that submission pauses, or goes on.
func (b *bulkRun) reportPause() {
	if paused := b.breaker.Open(); paused != b.progress.Paused {
		b.progress.Paused = paused
		b.report(b.progress)
	}
}

// halt has nothing more taken or sent, for the first reason that it is given.
func (b *bulkRun) halt(err error) {
	if !b.stopped {
		b.stopped = true
		b.stopSending(err)
	}
}

// stopSending gives every record that was not sent the result that it was not.
func (b *bulkRun) stopSending(err error) {
	b.stopErr = err
	unsent := b.ready
	for _, behind := range b.blocked {
		unsent = append(unsent, behind...)
	}
	b.ready = nil
	clear(b.blocked)
	slices.SortFunc(unsent, func(x, y *record) int { return x.index - y.index })
	for _, r := range unsent {
		b.complete(r, r.failure(err))
	}
}

// complete gives a record its result, to be delivered next or in its turn.
func (b *bulkRun) complete(r *record, err error) {
	r.err, r.body, r.done = err, nil, true
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
