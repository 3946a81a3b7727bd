package bins

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/carddata/carddata-go/bins/internal/match"
	"github.com/carddata/carddata-go/internal/bulk"
	"github.com/carddata/carddata-go/internal/fault"
	flow "github.com/carddata/carddata-go/internal/oldflow"
	"github.com/carddata/carddata-go/internal/transport"
)

// A load is one request of a loader. It collects cards during its window, and for as long as
// it waits for a place in flight. Its lookups are written before done is closed, and read
// afterwards.
type load struct {
	lookups  []*lookup
	done     chan struct{}
	panicked any

	// When window ends, the request asks for a place. ctx is canceled when the last waiter
	// leaves, and has the last waiter's deadline; it covers waits and retries. wireCtx bounds
	// the request on the wire, which may continue.
	window, ctx, wireCtx            context.Context
	closeWindow, cancel, cancelWire context.CancelFunc
	clock                           transport.Clock

	// The loader's lock guards the fields below.
	began     time.Time
	waiters   int
	earliest  time.Time     // deadline of a waiter
	latest    time.Time     // deadline of a waiter; zero: nobody has waited
	checked   int           // lookups that were looked up in the caller's cache
	place     int           // number of the request in the flow; 0: it has no place
	overdue   *time.Timer   // ends the place of the last attempt; nil: the usual time is not known
	late      bool          // it has counted as a failure because it took too long
	pause     time.Duration // until the next probe, if the flow held the request back
	sent      bool
	detached  bool // and counted in Loader.detached
	abandoned bool // it ended for waiters who have left: others have to ask again
	attempts  int
	failed    *fault.Failure // of the last failed attempt
	retrying  chan struct{}  // closed when the next attempt fails
}

const (
	// loadTimeout equals the timeout of a lookup without a deadline.
	loadTimeout = 30 * time.Second
	// maxDetached bounds the requests without waiters.
	maxDetached = 16
	// renewEvery is the time between two requests that renew the same card.
	renewEvery = 2 * time.Second
)

// add puts id into a request that is still collecting cards.
func (l *Loader) add(ctx context.Context, id string) *load {
	i := slices.IndexFunc(l.pending, func(b *load) bool {
		return len(b.lookups) < MaxCards && match.CanJoin(id, b.lookups, (*lookup).identifier)
	})
	if i < 0 {
		i = len(l.pending)
		b := &load{began: time.Now(), done: make(chan struct{}), retrying: make(chan struct{}), earliest: time.Now().Add(l.o.Window + loadTimeout)}
		b.wireCtx, b.cancelWire = context.WithDeadline(context.WithoutCancel(ctx), b.earliest)
		b.ctx, b.cancel = context.WithCancel(b.wireCtx)
		b.window, b.closeWindow = context.WithTimeout(b.ctx, l.o.Window)
		b.ctx = waitersContext{b.ctx, l, b}
		l.pending = append(l.pending, b)
		go l.send(b)
	}
	b := l.pending[i]
	b.lookups = append(b.lookups, &lookup{sent: id})
	l.inFlight[id] = b
	if len(b.lookups) == MaxCards {
		b.closeWindow()
	}
	return b
}

// renew requests a card with a stale result, unless callers need the place. Nobody waits for
// it. If it is refused, no load asks again for a while.
func (l *Loader) renew(ctx context.Context, id string, stale *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight[id] == nil && l.detached < maxDetached && l.flow.IsFree() {
		stale.asked.Store(time.Now().Add(renewEvery).UnixNano())
		if b := l.add(ctx, id); b.waiters == 0 {
			l.detach(b)
		}
	}
}

// A waitersContext has the deadline of the last waiter, so that a retry begins in time for it.
type waitersContext struct {
	context.Context
	loader *Loader
	load   *load
}

func (c waitersContext) Deadline() (time.Time, bool) {
	c.loader.mu.Lock()
	defer c.loader.mu.Unlock()
	return c.load.deadline(), true
}

// deadline is that of the last waiter. It is called under the lock.
func (b *load) deadline() time.Time {
	deadline, _ := b.wireCtx.Deadline()
	if !b.latest.IsZero() && b.latest.Before(deadline) {
		return b.latest
	}
	return deadline
}

// detach lets a request continue without waiters, up to a limit of such requests.
func (l *Loader) detach(b *load) {
	if !b.detached && l.detached < maxDetached {
		b.detached = true
		l.detached++
	}
}

// send sends a request when it is full or its window has ended, and there is a place for it.
func (l *Loader) send(b *load) {
	defer b.cancelWire()
	<-b.window.Done()
	r := &response{}
	ended := false
	defer func() {
		if !ended {
			r.err, b.panicked = bulk.ErrPanicked, bulk.Panicked(recover())
		}
		l.close(b) // if the cache panicked
		l.remove(b)
		close(b.done)
		l.store.share(b.wireCtx, r.values)
	}()
	missed := l.fetch(b) // before it has a place: the cache may know all cards, even in an outage
	if len(missed) > 0 {
		_ = l.enter(b.ctx, b) // cards join meanwhile; the request reports an error
	}
	l.close(b)
	if missed = slices.Concat(missed, l.fetch(b)); len(missed) > 0 {
		r = l.request(b, missed)
	}
	ended = true
}

// fetch looks the cards that were added since the last call up in the caller's cache.
func (l *Loader) fetch(b *load) (missed []*lookup) {
	l.mu.Lock()
	added := b.lookups[b.checked:]
	b.checked = len(b.lookups)
	ctx, cancel := context.WithDeadline(b.wireCtx, b.earliest)
	l.mu.Unlock()
	defer cancel()
	return l.store.fetch(ctx, added)
}

// close ends the collection of cards.
func (l *Loader) close(b *load) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = slices.DeleteFunc(l.pending, func(other *load) bool { return other == b })
	b.sent = true
}

// request sends a request, and gives each lookup its result.
func (l *Loader) request(b *load, lookups []*lookup) *response {
	r := l.store.request(b.ctx, l.client, lookups, transport.Call{
		RequestContext: b.wireCtx,
		Enter:          func(ctx context.Context) error { return l.enter(ctx, b) },
		Leave:          func() error { return l.start(b) },
		Usual:          l.flow.Usual,
		Clock:          &b.clock,
		Observe:        func(attempts int, failed *fault.Failure) { l.observe(b, attempts, failed) },
	}, l.settings)
	if failed, ok := errors.AsType[*Error](r.err); ok {
		failed.RetryAfter = cmp.Or(b.pause, failed.RetryAfter)
	}
	l.unread.Add(int64(r.unread))
	r.values = l.store.keep(lookups)
	for _, lookup := range lookups {
		lookup.err = cmp.Or(r.err, lookup.err)
	}
	defer l.log()
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.err == nil {
		l.settle(b, nil)
	}
	// What an attempt waits for ends in time for those who wait when that begins.
	b.abandoned = b.abandoned || transport.IsTooLate(r.err) && time.Until(b.deadline()) > l.flow.Usual()
	l.giveBack(b)
	return r
}

// enter waits for a place, unless the request has one.
func (l *Loader) enter(ctx context.Context, b *load) error {
	l.mu.Lock()
	place := b.place
	l.mu.Unlock()
	if place > 0 {
		return nil
	}
	place, err := l.flow.Wait(ctx, 0)
	l.mu.Lock()
	defer l.mu.Unlock()
	b.place = place
	return l.suspended(b, err)
}

// start looks at the flow again, because the attempt may have waited for a token or a limiter.
func (l *Loader) start(b *load) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.flow.Recheck(b.place); err != nil {
		l.giveBack(b)
		return l.suspended(b, err)
	}
	if l.flow.TooLate(b.deadline(), time.Since(b.began)) {
		l.giveBack(b)
		return transport.TooLate(nil)
	}
	// A request that takes much longer than usual, and is overtaken by others, loses its place:
	// those of other callers need it. It counts as a failure if none has succeeded meanwhile.
	if place, overdue := b.place, l.flow.Overdue(); place > 0 && overdue > 0 {
		b.overdue = time.AfterFunc(overdue, func() {
			defer l.log()
			l.mu.Lock()
			defer l.mu.Unlock()
			switch {
			case b.place != place:
			case l.isOvertaken(b):
				l.giveBack(b)
			case l.worked.After(b.clock.Left()): // it waits behind those that left before it
				b.overdue.Reset(overdue)
			default:
				l.failOverdue(b)
			}
		})
	}
	return nil
}

func (l *Loader) suspended(b *load, err error) error {
	if pause, ok := errors.AsType[*flow.Pause](err); ok {
		b.pause = time.Until(l.client.core.Probes("", time.Now().Add(pause.Left)))
		return suspendedBy(l.failure, "the service kept failing, the next probe is awaited")
	}
	if errors.Is(err, flow.ErrTooLate) {
		return transport.TooLate(nil)
	}
	return err
}

// observe records each attempt of a request.
func (l *Loader) observe(b *load, attempts int, failed *fault.Failure) {
	defer l.log()
	l.mu.Lock()
	defer l.mu.Unlock()
	b.attempts = attempts
	if failed == nil {
		l.requests.Add(1)
		return
	}
	b.failed = failed
	close(b.retrying)
	b.retrying = make(chan struct{})
	l.settle(b, (*Error)(failed))
}

// settle tells the flow what an attempt shows about the service.
func (l *Loader) settle(b *load, failed *Error) {
	if b.place == 0 {
		if !b.late && !l.worked.IsZero() {
			return
		}
		if failed == nil {
			l.worked = time.Now()
			l.flow.Arrived(b.clock.Took())
			return
		}
		if b.late {
			return // it has counted
		}
		// Its callers have left, but if nothing has ever worked, others will meet the same.
		if b.place, _ = l.flow.Return(); b.place == 0 {
			return
		}
	}
	var err error
	if failed != nil {
		err = failed
	}
	m := meaningOf(b.wireCtx, err, !l.worked.IsZero())
	switch {
	case failed == nil:
	case errors.Is(b.wireCtx.Err(), context.DeadlineExceeded):
		m = bulk.Outage // no response in loadTimeout
	case errors.Is(failed, ErrLocalLimit):
		m = bulk.Nothing // a limiter that refuses says nothing of the service
	case failed.StatusCode != 0 && failed.failure().Scope() == fault.OfSetup:
		m = bulk.Outage // such as 401: others will meet the same
	case b.ctx.Err() != nil && l.isOvertaken(b): // and its callers have left
		m = bulk.Nothing
	}
	switch m {
	case bulk.Success:
		if err == nil {
			l.worked = time.Now()
			if left := b.clock.Left(); left.After(l.overtook) {
				l.overtook = left
			}
		}
		l.flow.Succeeded(b.place, b.clock.Took())
		l.free(b)
	case bulk.Outage:
		l.fail(b, failed)
	default:
		l.giveBack(b)
	}
}

// isOvertaken reports whether one that left later has succeeded: then only this one hangs.
func (l *Loader) isOvertaken(b *load) bool { return l.overtook.After(b.clock.Left()) }

// failOverdue counts a request as a failure although its response may still arrive.
func (l *Loader) failOverdue(b *load) {
	b.late = true
	l.fail(b, &Error{Operation: "load", Err: fault.NewError("the response takes too long", ErrTimeout)})
}

// fail tells the flow that a request failed in a way that others may meet, too.
func (l *Loader) fail(b *load, failed *Error) {
	l.failure = failed
	bulk.Settle(l.flow, b.place, bulk.Outage, b.clock.Took(), failed.failure())
	l.free(b)
}

func (l *Loader) free(b *load) {
	b.place = 0
	if b.overdue != nil {
		b.overdue.Stop()
	}
}

func (l *Loader) log() {
	state := l.flow.State()
	l.pauses.Log(state.Paused, state.Next, state.Why)
}

// giveBack gives back a place without a result.
func (l *Loader) giveBack(b *load) {
	if b.place > 0 {
		l.flow.Ignored(b.place, b.clock.Took())
		l.free(b)
	}
}

// remove removes a finished request.
func (l *Loader) remove(b *load) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lookup := range b.lookups {
		delete(l.inFlight, lookup.sent)
	}
	b.sent = false
	if b.detached {
		l.detached--
	}
	l.giveBack(b) // if the caller's code panicked
}
