package bins

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"time"

	"github.com/carddata/carddata-go/bins/internal/match"
	"github.com/carddata/carddata-go/internal/bulk"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/transport"
)

const (
	// maxDetached bounds the requests without waiters.
	maxDetached = 16
	// renewEvery is the time between two requests that renew the same card.
	renewEvery = 2 * time.Second
	// mostTogether is how often cards are sent together if one of them may make the request fail.
	mostTogether = 2
	// aloneFor is how long a card goes alone after its request has failed.
	aloneFor = time.Minute
	// mostAlone bounds what is known of such cards. What is forgotten costs a failure.
	mostAlone = 10_000
)

// A load is one card on its way to its result. It collects with others for a short time, is looked
// up in the caller's cache, waits for its turn, and is sent. Its lookup is written before done is
// closed, and read afterwards, and so are panicked and over. The loader's lock guards the rest.
type load struct {
	lookup
	ctx      context.Context // has the values of the caller that began it, and no end
	done     chan struct{}
	panicked any
	over     time.Time // when its request ended for those who waited for it; zero: it has failed for all

	waiters          int
	earliest, latest time.Time // deadlines of those who have waited
	renews           bool      // it is sent although nobody waits
	alone            bool      // it shares no request
	request          *request  // nil: it has none yet
}

// joins counts a caller that waits until a deadline.
func (own *load) joins(deadline time.Time) {
	own.waiters++
	if own.earliest.IsZero() || deadline.Before(own.earliest) {
		own.earliest = deadline
	}
	if deadline.After(own.latest) {
		own.latest = deadline
	}
}

// A group is loads that began within a window.
type group struct {
	loads []*load
	full  chan struct{} // closed when they fill a request
}

// A request is the loads that are sent together. Its waits and retries end with the last waiter, and
// no later than the deadlines that the waiters had when it was made. In flight, only its attempt
// timeout and Close end it.
type request struct {
	loads    []*load
	deadline time.Time
	ctx      context.Context // of waits and retries
	wire     context.Context // of what is in flight
	cancel   context.CancelFunc
	cut      context.CancelCauseFunc

	sent     bool // it is in flight
	detached bool // and counted in Loader.detached
	attempts int
	failed   *fault.Failure // of the last failed attempt
}

// end ends a request, in flight, too.
func (r *request) end(cause error) {
	r.cut(cause)
	r.cancel()
}

var seed = maphash.MakeSeed()

// hashOf stands for an identifier where it would outlive its load.
func hashOf(id string) uint64 { return maphash.String(seed, id) }

// add begins a load.
func (l *Loader) add(ctx context.Context, id string) *load {
	own := &load{lookup: lookup{sent: id}, ctx: context.WithoutCancel(ctx), done: make(chan struct{})}
	l.inFlight[id] = own
	g := l.group
	if g == nil {
		g = &group{full: make(chan struct{})}
		l.group = g
		l.tasks.Go(func() { l.collect(g) })
	}
	if g.loads = append(g.loads, own); len(g.loads) == MaxCards {
		close(g.full)
		l.group = nil
	}
	return own
}

// renew requests a card with a stale result, unless callers need the place. Nobody waits for
// it. If it is refused, no load asks again for a while.
func (l *Loader) renew(ctx context.Context, id string, stale *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && l.inFlight[id] == nil && l.detached < maxDetached && len(l.ready) == 0 {
		stale.asked.Store(time.Now().Add(renewEvery).UnixNano())
		l.add(ctx, id).renews = true
	}
}

// collect waits for the window of a group, and looks its loads up in the caller's cache. The rest is
// ready to be sent.
func (l *Loader) collect(g *group) {
	found := false
	defer func() {
		var panicked any
		if recovered := recover(); !found {
			panicked = bulk.Panicked(recovered)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, own := range g.loads {
			switch own.panicked = panicked; {
			case panicked != nil, own.reused, own.stale:
				l.finish(own)
			default:
				own.alone = time.Now().Before(l.alone[hashOf(own.sent)])
				l.ready = append(l.ready, own)
			}
		}
		l.next()
	}()
	select {
	case <-time.After(l.o.Window):
	case <-g.full:
	case <-l.closing:
	}
	l.mu.Lock()
	if l.group == g {
		l.group = nil
	}
	earliest := time.Now().Add(loadTimeout)
	lookups := make([]*lookup, len(g.loads))
	for i, own := range g.loads {
		if lookups[i] = &own.lookup; own.waiters > 0 && own.earliest.Before(earliest) {
			earliest = own.earliest
		}
	}
	l.mu.Unlock()
	ctx, cancel := context.WithDeadline(g.loads[0].ctx, earliest)
	defer cancel()
	l.store.fetch(ctx, lookups)
	found = true
}

// abandon ends a load that nobody waits for. Whoever has joined it meanwhile asks again.
func (l *Loader) abandon(own *load) {
	own.err, own.over = context.Canceled, time.Now()
	l.finish(own)
}

// finish gives a load back to its callers.
func (l *Loader) finish(own *load) {
	delete(l.inFlight, own.sent)
	close(own.done)
}

// next starts the next request, unless one has not left yet: then further cards collect.
func (l *Loader) next() {
	if l.closed {
		for _, own := range l.ready {
			l.abandon(own)
		}
		l.ready = nil
	}
	if l.leaving != nil {
		return
	}
	if loads := l.take(); len(loads) > 0 {
		r := newRequest(loads)
		l.leaving = r
		l.tasks.Go(func() { l.send(r) })
	}
}

// take takes the loads of the next request. Those that all callers have left are over.
func (l *Loader) take() (taken []*load) {
	var rest []*load
	for _, own := range l.ready {
		switch {
		case own.waiters == 0 && !own.renews:
			l.abandon(own)
		case len(taken) == 0,
			len(taken) < MaxCards && !taken[0].alone && !own.alone && match.CanJoin(own.sent, taken, (*load).identifier):
			taken = append(taken, own)
		default:
			rest = append(rest, own)
		}
	}
	l.ready = rest
	return taken
}

func newRequest(loads []*load) *request {
	r := &request{loads: loads}
	for _, own := range loads {
		own.request = r
		if own.waiters > 0 && own.latest.After(r.deadline) {
			r.deadline = own.latest
		}
	}
	if r.deadline.IsZero() { // nobody waits
		r.deadline = time.Now().Add(renewEvery)
	}
	r.wire, r.cut = context.WithCancelCause(loads[0].ctx)
	r.ctx, r.cancel = context.WithDeadline(r.wire, r.deadline)
	return r
}

// send sends a request, and gives each load its result.
func (l *Loader) send(r *request) {
	var values map[string][]byte
	var err error
	ended := false
	defer func() {
		var panicked any
		if recovered := recover(); !ended {
			panicked = bulk.Panicked(recovered)
		}
		l.conclude(r, err, panicked)
		l.store.share(r.wire, values)
	}()
	lookups := make([]*lookup, len(r.loads))
	for i, own := range r.loads {
		lookups[i] = &own.lookup
	}
	call := transport.Call{
		Operation:      operationLoad,
		RequestContext: r.wire,
		Door:           l.window,
		Observe:        func(attempts int, failed *fault.Failure) { l.observe(r, attempts, failed) },
	}
	if len(r.loads) == 1 {
		call.Of = hashOf(r.loads[0].sent)
	} else {
		call.Enough = func(f *fault.Failure) bool { return f.Attempts >= mostTogether && mayBeOfOne((*Error)(f)) }
	}
	response := l.store.request(r.ctx, l.client, lookups, call, l.settings)
	values, err = l.store.keep(lookups), response.err
	l.unread.Add(int64(response.unread))
	l.logState()
	ended = true
}

// mayBeOfOne reports whether a single card may have made a request fail.
func mayBeOfOne(err error) bool { return blameFor(err) >= serviceOrCards }

// observe notes that an attempt is sent, or has failed.
func (l *Loader) observe(r *request, attempts int, failed *fault.Failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.attempts, r.sent = attempts, failed == nil
	if !r.sent {
		r.failed = failed
		if scope := failed.Scope(); scope == fault.OfOutage || scope == fault.OfSetup {
			l.failure = (*Error)(failed)
		}
		return
	}
	l.requests.Add(1)
	l.leaves(r)
	l.goesOn(r, nil)
}

// leaves makes room for the next request.
func (l *Loader) leaves(r *request) {
	if l.leaving == r {
		l.leaving = nil
		l.next()
	}
}

// goesOn decides what becomes of a request that nobody waits for: it is neither started nor retried. In
// flight it goes on, unless too many do.
func (l *Loader) goesOn(r *request, end error) {
	if slices.ContainsFunc(r.loads, func(own *load) bool { return own.waiters > 0 || own.renews && !r.sent }) {
		return
	}
	switch {
	case !r.sent || r.detached:
	case l.detached < maxDetached:
		r.detached = true
		l.detached++
	default:
		r.cut(end)
	}
	r.cancel()
}

// conclude ends a request. If one of its loads may have made it fail, each of those that are waited for is sent alone.
func (l *Loader) conclude(r *request, err error, panicked any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var over time.Time
	switch {
	case r.ctx.Err() == context.Canceled:
		over = time.Now()
	case errors.Is(err, context.DeadlineExceeded):
		over = r.deadline
	}
	r.end(nil)
	r.sent = false
	if r.detached {
		l.detached--
	}
	if failed, _ := errors.AsType[*Error](err); errors.Is(err, ErrSuspended) && failed.Attempts == 0 {
		failed.Err = suspendedBy(l.failure, failed.Err.Error())
	}
	ofOne := mayBeOfOne(err)
	var again []*load
	for _, own := range r.loads {
		if ofOne {
			l.isolate(own)
		}
		if ofOne && len(r.loads) > 1 && own.waiters > 0 && !l.closed {
			own.alone = true
			again = append(again, own)
			continue
		}
		own.err, own.over, own.panicked = cmp.Or(err, own.err), over, panicked
		l.finish(own)
	}
	l.ready = append(again, l.ready...)
	l.leaves(r)
	l.next()
}

// isolate sends a card alone for a while.
func (l *Loader) isolate(own *load) {
	if len(l.alone) >= mostAlone {
		clear(l.alone)
	}
	l.alone[hashOf(own.sent)] = time.Now().Add(aloneFor)
}

// logState logs a pause and its end.
func (l *Loader) logState() { l.pauses.Log(l.window.State()) }
