package bins

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// LoaderOptions configure a [Loader]. A checkout sets PrefixLength and Memory: see [Loader].
type LoaderOptions struct {
	// Enhanced is sent with every request: see [LookupRequest.Enhanced].
	Enhanced *bool
	// Window is how long a request waits for further cards. Zero is 2 milliseconds; below
	// zero a card does not wait.
	Window time.Duration
	// PrefixLength is how many digits, 1 to 11, are sent of an identifier that may be a card
	// number: see [BulkOptions.PrefixLength]. Zero sends identifiers unchanged, and then
	// results of card numbers (12 digits or more) are not cached.
	PrefixLength int
	// Memory caches results by what is sent. Nil makes a [MemoryCache] with the default
	// options for this loader alone. To serve cards through an outage, set one with
	// [CacheOptions.StaleFor]: see the Example of CacheOptions (StaleFor).
	Memory *MemoryCache
	// Cache is a second cache, outside the process, for what Memory does not have. Nil is
	// none.
	Cache Cache
}

// A Loader looks up single cards for many goroutines, as in a checkout. Calls within a
// short window share one request, concurrent calls for the same card become one lookup,
// and results are cached.
//
// A checkout wants both [LoaderOptions.PrefixLength] and [CacheOptions.StaleFor]. With the
// first, the cards of one BIN share a cached result; without it, no card number is cached.
// With the second, a cached card is served at once, even if it has expired and the service is
// down. See the Examples of Loader and of CacheOptions (StaleFor).
//
// Make one with [NewLoader] when the program starts. It is safe for concurrent use, and needs
// no Close. Only the client's rate limit bounds the number of requests in flight. Do not call
// Load in a loop, which sends one card in a request: use [Client.LookupAll] for a list.
type Loader struct {
	client *Client
	o      LoaderOptions
	opts   []Option
	store  *store

	loads, hits, stale, coalesced, requests atomic.Int64

	mu       sync.Mutex
	pending  []*load          // that have not left; most often one
	inFlight map[string]*load // by identifier, until the result is there
	detached int              // requests without waiting callers
	renewal  backoff          // of stale results
}

// LoaderStats count what a loader has done so far.
type LoaderStats struct {
	Loads     int64 // calls of Load with a usable card
	Hits      int64 // calls served from memory
	Stale     int64 // hits with an expired result; see [CacheOptions.StaleFor]
	Coalesced int64 // calls that joined another call for the same card
	Requests  int64 // requests sent, retries included
}

// Stats returns what the loader has done so far.
func (l *Loader) Stats() LoaderStats {
	return LoaderStats{l.loads.Load(), l.hits.Load(), l.stale.Load(), l.coalesced.Load(), l.requests.Load()}
}

// NewLoader returns a loader that sends its requests with c. opts are the options of each
// request. A checkout sets PrefixLength, and a Memory with [CacheOptions.StaleFor]: see
// [Loader]. NewLoader fails with [ErrInvalidArgument] if NewClient did not make c, or if
// PrefixLength or an option is unusable.
func NewLoader(c *Client, o LoaderOptions, opts ...Option) (*Loader, error) {
	if c == nil || c.core == nil {
		return nil, &Error{Operation: "new loader", Err: transport.Invalid("the client was not made by NewClient")}
	}
	if err := cmp.Or(checkPrefix(o.PrefixLength), c.core.CheckOptions(opts)); err != nil {
		return nil, &Error{Operation: "new loader", Err: err}
	}
	o.Window = max(0, cmp.Or(o.Window, 2*time.Millisecond))
	l := &Loader{
		client: c, o: o, opts: opts,
		store:    newStore("load", o.Memory, defaultEntries, o.Cache, o.Enhanced),
		inFlight: map[string]*load{},
	}
	l.store.staleFirst = true
	return l, nil
}

// Load looks up one card. You may change the result. An unknown card is not an error: see
// [Result.Card].
//
// An error is the failure of the request, [ErrInvalidArgument] for an empty card, [ErrMissing],
// [ErrBadResponse] for an item that cannot be read, the end of ctx, or [ErrRateLimited] as soon
// as the service asks for a pause beyond the deadline. The last two also match what the request
// last failed with. If the service refuses a request, all its cards fail. So trim and
// check what a customer typed before you look it up.
//
// The call ends at the deadline of ctx, or after 30 seconds if ctx has none. Other callers of
// the same request go on. If none is left, up to 16 such requests still go on without retries,
// so that later callers find their results in the cache: do not set [WithAttemptTimeout] to
// your callers' deadline. A request has the context values, such as a trace, of the caller
// that began it.
func (l *Loader) Load(ctx context.Context, card string) (Result, error) {
	fail := func(err error) (Result, error) { return Result{}, &Error{Operation: "load", Err: err} }
	switch {
	case l == nil || l.client == nil:
		return fail(transport.Invalid("the loader was not made by NewLoader"))
	case ctx == nil:
		return fail(transport.Invalid("the context is nil"))
	case ctx.Err() != nil:
		return fail(transport.Ended(ctx))
	}
	id := truncatePAN(card, l.o.PrefixLength)
	if err := checkCard(id); err != nil {
		return fail(err)
	}
	l.loads.Add(1)
	known, shared := l.find(ctx, id)
	if _, bounded := ctx.Deadline(); !bounded && known == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.o.Window+loadTimeout)
		defer cancel()
	}
	for ; known == nil; known, shared = l.find(ctx, id) {
		if err := l.wait(ctx, shared); err != nil {
			return Result{}, err
		}
		if shared.panicked != nil {
			panic(shared.panicked) // the caller can recover here
		}
		i := slices.IndexFunc(shared.lookups, func(own *lookup) bool { return own.sent == id })
		switch own := shared.lookups[i]; {
		case own.stale:
			continue // the memory has it now
		case own.err == nil:
			return own.result.clone(), nil
		case !shared.abandoned || ctx.Err() != nil:
			return Result{}, own.err
		}
		// The request failed at a moment when nobody waited for it. This caller still waits,
		// so try again.
	}
	l.hits.Add(1)
	r := known.result(id)
	if r.Stale = !known.isUsable(0); r.Stale {
		l.stale.Add(1)
		if time.Now().UnixNano() >= known.asked.Load() {
			l.renew(ctx, id)
		}
	}
	return r, nil
}

// A load is one request of a loader. Its lookups are written before done is closed, and read
// afterwards.
type load struct {
	lookups  []*lookup
	done     chan struct{}
	panicked any

	// When window ends, the request is sent. ctx is canceled when the last waiter leaves; it
	// covers waits and retries. wireCtx bounds the request on the wire, which may continue.
	window, ctx, wireCtx            context.Context
	closeWindow, cancel, cancelWire context.CancelFunc

	// The loader's lock guards the fields below.
	waiters   int
	deadline  time.Time // the earliest deadline of the waiters
	sent      bool
	detached  bool // and counted in Loader.detached
	abandoned bool // all waiters had left while a retry was still possible
	attempts  int
	failed    *transport.Failure // of the last failed attempt
	retrying  chan struct{}      // closed when the next attempt fails
}

// find returns the memory's result for id, or else the request that the caller must wait for.
func (l *Loader) find(ctx context.Context, id string) (known *entry, shared *load) {
	l.mu.Lock() // held for both, because a request could end in between and leave its result in memory
	defer l.mu.Unlock()
	if known = l.store.findStale(id); known != nil {
		return known, nil
	}
	if shared = l.inFlight[id]; shared != nil {
		l.coalesced.Add(1)
	} else {
		shared = l.add(ctx, id)
	}
	shared.waiters++
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(shared.deadline) {
		shared.deadline = deadline
	}
	return nil, shared
}

// wait waits for the end of a request or of ctx. It returns early if the service asks for a
// pause that outlasts ctx, even during the wait.
func (l *Loader) wait(ctx context.Context, b *load) error {
	for {
		l.mu.Lock()
		retrying := b.retrying
		l.mu.Unlock()
		end := l.client.core.Throttled(ctx, "load")
		if end == nil {
			select {
			case <-b.done:
				return nil
			case <-retrying:
				continue
			case <-ctx.Done():
				end = &transport.Failure{Operation: "load", Err: transport.Ended(ctx)}
			}
		}
		return l.leave(b, end)
	}
}

// leave is called when a caller stops waiting. It returns the caller's error, with the last
// failure of the request. Requests without waiters are neither started nor retried; one
// already on the wire continues.
func (l *Loader) leave(b *load, end *transport.Failure) *Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.waiters--; b.waiters == 0 {
		b.abandoned = true
		b.cancel()
		if b.sent {
			l.detach(b)
		}
		if !b.detached {
			b.cancelWire()
		}
	}
	e := Error(*end)
	if b.failed != nil {
		e = Error(*b.failed)
		e.Operation, e.Err = end.Operation, transport.NewError(end.Err.Error()+": "+e.Err.Error(), e.Err, end.Err)
	}
	e.Attempts = b.attempts
	return &e
}

// observe records each attempt of a request.
func (l *Loader) observe(b *load, attempts int, failed *transport.Failure) {
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
}

// renew requests a card with a stale result. Nobody waits for it.
func (l *Loader) renew(ctx context.Context, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight[id] == nil && l.detached < maxDetached && l.renewal.isOver() {
		if b := l.add(ctx, id); b.waiters == 0 {
			l.detach(b)
		}
	}
}

// detach lets a request continue without waiters, up to a limit of such requests.
func (l *Loader) detach(b *load) {
	if !b.detached && l.detached < maxDetached {
		b.detached = true
		l.detached++
	}
}

// add puts id into a request that is still collecting cards.
func (l *Loader) add(ctx context.Context, id string) *load {
	i := slices.IndexFunc(l.pending, func(b *load) bool { return len(b.lookups) < MaxCards && canJoin(id, b.lookups) })
	if i < 0 {
		i = len(l.pending)
		b := &load{done: make(chan struct{}), retrying: make(chan struct{}), deadline: time.Now().Add(l.o.Window + loadTimeout)}
		b.wireCtx, b.cancelWire = context.WithDeadline(context.WithoutCancel(ctx), b.deadline)
		b.ctx, b.cancel = context.WithCancel(b.wireCtx)
		b.window, b.closeWindow = context.WithTimeout(b.ctx, l.o.Window)
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

const (
	// loadTimeout equals the timeout of a lookup without a deadline.
	loadTimeout = 30 * time.Second
	// maxDetached bounds the requests without waiters.
	maxDetached = 16
)

// send sends a request when it is full or its window has ended.
func (l *Loader) send(b *load) {
	defer b.cancelWire()
	<-b.window.Done()
	l.mu.Lock()
	l.pending = slices.DeleteFunc(l.pending, func(other *load) bool { return other == b })
	b.sent = true
	ctx, cancel := context.WithDeadline(b.wireCtx, b.deadline)
	l.mu.Unlock()
	defer cancel()
	r := &response{}
	ended := false
	defer func() {
		if !ended {
			r.err, b.panicked = errPanicked, cmp.Or(recover(), any(errPanicked))
		}
		l.remove(b, r.err)
		close(b.done)
		l.store.share(b.wireCtx, r.values)
	}()
	if missed := l.store.fetch(ctx, b.lookups); len(missed) > 0 {
		call := transport.Call{RequestContext: b.wireCtx, Observe: func(attempts int, failed *transport.Failure) { l.observe(b, attempts, failed) }}
		r = l.store.request(b.ctx, l.client, missed, call, l.opts)
		r.values = l.store.keep(missed)
		for _, lookup := range missed {
			lookup.err = cmp.Or(r.err, lookup.err)
		}
	}
	ended = true
}

// remove removes a finished request.
func (l *Loader) remove(b *load, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lookup := range b.lookups {
		delete(l.inFlight, lookup.sent)
	}
	b.sent = false
	if b.detached {
		l.detached--
	}
	if !errors.Is(b.wireCtx.Err(), context.Canceled) { // canceled by its callers
		l.renewal.settle(err == nil)
	}
}
