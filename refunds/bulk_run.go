package refunds

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/carddata/carddata-go/internal/bulk"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/transport"
)

// A bulkRun is one pass of SubmitAll. Everything runs on the goroutine that ranges over it,
// except the requests.
type bulkRun struct {
	caller         context.Context
	ctx            context.Context // the caller's, until stop; no request starts after its end
	cancel         context.CancelFunc
	requestCtx     context.Context // outlives ctx by the grace period
	cancelRequests context.CancelFunc
	client         *Client
	o              BulkOptions
	settings       *transport.Settings // of the records without options of their own
	yield          func(Submission, error) bool
	began          time.Time
	deadline       time.Time // of all responses; zero: none

	loop    *bulk.Loop[Item, *record]
	ready   []*record               // to be sent
	blocked map[refundKey][]*record // those that wait behind one with the same key, ready or in flight
	expires time.Time               // no ready or blocked record reaches HoldFor before this time; zero: no such record

	paused bool // the window, when it was seen last
	sought int  // records taken in this pause to find an account that works

	queued    int             // requests in flight that may still wait for a limiter
	changed   <-chan struct{} // signals a change of the window since advance looked
	succeeded int             // records that succeeded
	failure   error           // the last failure that was not about its record

	ordered []*record // if Ordered: all records from the first one without a result
	results []*record // to be yielded

	stopErr  error // why no record is taken or sent any more; nil while running
	progress BulkProgress
}

func newBulk(ctx context.Context, c *Client, o BulkOptions, settings *transport.Settings, yield func(Submission, error) bool) *bulkRun {
	o.Concurrency = cmp.Or(o.Concurrency, defaultConcurrency)
	o.Grace = cmp.Or(o.Grace, defaultGrace)
	o.GiveUpAfter = cmp.Or(o.GiveUpAfter, defaultGiveUpAfter)
	if o.HoldFor == 0 {
		if o.HoldFor = -1; o.ReadAhead {
			o.HoldFor = defaultHoldFor
		}
	}
	b := &bulkRun{
		caller: ctx, client: c, o: o, yield: yield, began: time.Now(),
		blocked: map[refundKey][]*record{},
	}
	b.settings, _ = settings.With(nil) // an account's own are only those of its item
	b.loop = bulk.NewLoop(b.take, b.add, 2*o.Concurrency)
	if deadline, ok := ctx.Deadline(); ok {
		b.deadline = deadline.Add(max(0, o.Grace))
	}
	b.ctx, b.cancel = context.WithCancel(ctx)
	b.requestCtx, b.cancelRequests = context.WithCancel(context.WithoutCancel(ctx))
	b.loop.Tasks.Go(func() {
		<-b.ctx.Done()
		defer time.AfterFunc(o.Grace, b.cancelRequests).Stop()
		<-b.requestCtx.Done()
	})
	return b
}

// run processes all input, unless something ends the submission early.
func (b *bulkRun) run(items iter.Seq[Item]) {
	if b.advance() {
		b.loop.Run(b.ctx, items, b.o.ReadAhead, b.advance)
	}
}

// add queues one record. If its refund_id is in use for the same account, the record waits
// for the other one.
func (b *bulkRun) add(r *record) {
	r.index = b.progress.Taken
	b.progress.Taken++
	if b.o.Ordered {
		b.ordered = append(b.ordered, r)
	}
	err := cmp.Or(r.err, b.stopErr)
	behind, busy := b.blocked[r.refundKey]
	switch {
	case err != nil:
		b.complete(r, r.failure(err))
	case busy:
		b.blocked[r.refundKey] = append(behind, r)
		b.hold(r)
	default:
		if b.paused {
			b.sought++
		}
		b.blocked[r.refundKey] = nil
		at := len(b.ready)
		if b.client.health.meet(r.accountID) { // before the records of refused accounts
			at = 0
		}
		b.ready = slices.Insert(b.ready, at, r)
		b.hold(r)
	}
}

// advance sends, receives and delivers until it needs a record that only the caller's input
// can bring, or until the input has ended and every record has its result. It reports whether
// to go on.
func (b *bulkRun) advance() bool {
	for {
		for b.loop.HasEvents() {
			b.loop.Receive()
		}
		b.loop.Rethrow()
		b.changed = b.client.health.window.Changed()
		b.reportPause()
		if b.caller.Err() != nil { // b.ctx ends a moment later
			b.halt(fault.Ended(b.caller))
		}
		b.expire()
		b.giveUp()
		more := !b.loop.Ended && b.stopErr == nil
		take := more && b.mayTake()
		next, due := b.next()
		switch {
		case due && b.hasPlace() && b.send(next):
		case take && !b.loop.IsAhead():
			return true
		case take && b.loop.TakeAhead():
		case len(b.results) > 0:
			if !b.deliver() {
				return false
			}
		case len(b.ready) > 0 && b.hasPlace() && b.send(next):
		case more || b.held() > 0:
			b.wait(take)
		case b.stopErr != nil:
			b.awaitInput() // it may have a message to give back, and the error may end the process
			b.yield(ended(b.stopErr))
			return false
		default:
			return true
		}
	}
}

// held is the number of records without a result.
func (b *bulkRun) held() int { return b.progress.Taken - b.progress.Done }

// hasPlace reports whether this call may have one more request in flight. Only one request
// waits for a limiter at a time. More would all leave in an outage, before one of those that
// left first has shown that it has begun.
func (b *bulkRun) hasPlace() bool {
	return b.loop.Running < b.o.Concurrency && b.queued == 0 && time.Until(b.client.core.PausedUntil(b.ctx)) <= 0
}

// mayTake reports whether to take one more record, because it can be sent at once. In a pause
// caused by refused accounts, it also looks for a record of another account, and in one that
// the ready records may have caused, for another record.
func (b *bulkRun) mayTake() bool {
	if b.isFull() {
		return false
	}
	if _, ok := b.next(); !ok && b.hasPlace() && b.client.health.window.IsFree() {
		return true
	}
	return b.seeks()
}

// seeks reports whether to look for an account that works, because those so far are refused.
func (b *bulkRun) seeks() bool {
	return b.paused && !b.loop.Ended && b.sought < maxWaiting && b.held() < maxWaiting+b.o.Concurrency && b.client.health.seeks()
}

// isFull bounds the results that wait for the caller, and the records without one.
func (b *bulkRun) isFull() bool {
	return len(b.results) >= b.o.Concurrency || b.held() >= maxWaiting+b.o.Concurrency
}

// next returns the index of the record to send next. A record that failed waits until others
// have succeeded: they tell whether only this one fails. If all ready records wait so, or none
// is ready, ok is false.
func (b *bulkRun) next() (i int, ok bool) {
	i = slices.IndexFunc(b.ready, func(r *record) bool { return b.succeeded >= r.behind })
	return max(0, i), i >= 0
}

// send sends a ready record, unless the window is full. It reports whether it did.
func (b *bulkRun) send(i int) bool {
	request, ok := b.client.health.window.Take()
	if !ok {
		return false
	}
	r := b.ready[i]
	b.ready = slices.Delete(b.ready, i, i+1)
	r.place = place{health: b.client.health, waits: r.taken, deadline: b.deadline, request: request}
	if r.queued = r.settings.Limiter != nil; r.queued {
		b.queued++
		r.place.onLeave = func() { b.loop.Post(func() { b.unqueue(r) }) }
	}
	b.loop.Start(func() func() {
		ctx, cancel := context.WithCancelCause(b.ctx)
		defer cancel(nil)
		if b.o.HoldFor >= 0 {
			// HoldFor ends its waits. With a deadline, a limiter would refuse a record
			// instead of delaying it.
			end := func() { cancel(&fault.Limit{Reason: errHeldTooLong, Caller: b.ctx}) }
			defer time.AfterFunc(time.Until(r.taken.Add(b.o.HoldFor)), end).Stop()
		}
		r.receipt, r.err = b.client.send(ctx, b.requestCtx, &r.encodedRefund, &r.place, r.settings)
		return func() { b.receive(r) }
	}, func() {
		r.lost, r.err = true, r.failure(bulk.ErrPanicked)
		b.receive(r)
	})
	return true
}

// wait waits for a response, a place, a timer, the end of ctx, or the next record if the loop
// may take one.
func (b *bulkRun) wait(take bool) {
	done := b.ctx.Done()
	if b.stopErr != nil {
		done = nil
	}
	b.loop.Wait(take, b.due(take), b.changed, done)
}

// due returns a channel that receives at the next time to act: a request is due, a record has
// been held for HoldFor, or it is time to give up.
func (b *bulkRun) due(take bool) <-chan time.Time {
	if b.stopErr != nil {
		return nil
	}
	var place time.Time
	waits := len(b.ready) > 0 || !take && !b.loop.Ended && !b.isFull()
	if waits && b.loop.Running < b.o.Concurrency && b.queued == 0 {
		place = b.client.health.window.Due(b.client.core.PausedUntil(b.ctx))
	}
	return bulk.At(place, b.expires, b.giveUpTime())
}
