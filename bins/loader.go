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

// LoaderOptions configure a [Loader]. The zero value is a good choice for BINs; for card
// numbers, see Memory.
type LoaderOptions struct {
	// Enhanced is sent with every request: see [LookupRequest.Enhanced].
	Enhanced *bool
	// Window is how long a request waits for further cards: the most that batching
	// delays a card. Zero is 2 milliseconds; below zero a card does not wait.
	Window time.Duration
	// PrefixLength is how many digits, 1 to 11, are sent of an identifier that may be a
	// card number. Zero sends identifiers unchanged: see [BulkOptions.PrefixLength].
	// Results are cached by what is sent.
	PrefixLength int
	// Ranges lets one result serve its whole BIN range: see [BulkOptions.Ranges].
	Ranges bool
	// Memory caches results. A card number (12 digits or more) is cached only with
	// PrefixLength or Ranges. Nil makes a [MemoryCache] for this loader alone, with the
	// default options.
	Memory *MemoryCache
	// Cache is a second cache, outside the process. It is asked for what Memory does not
	// have, and stores the results of requests. Nil is none.
	Cache Cache
	// MaxDetached is how many requests may go on after all their callers have given up.
	// Their results are cached for later callers; otherwise a service slower than the
	// callers' deadlines would never fill the cache. They are not retried, and end
	// after 30 seconds, or after [WithAttemptTimeout] (10 seconds) if that is less: do
	// not set that to the deadline of your callers. Zero is 16; below zero such
	// requests are canceled.
	MaxDetached int
}

// A Loader looks up single cards for many goroutines, as in a checkout. Calls within a
// short window share one request, concurrent calls for the same card become one lookup,
// and results are cached: see [LoaderOptions.Memory].
//
// Make one with [NewLoader] when the program starts, and call [Loader.Load] on it for
// each card; calls of the zero value fail with [ErrInvalidArgument]. It is safe for
// concurrent use, holds no background goroutines, and needs no Close. Only calls from
// different goroutines share requests: in a loop, each Load waits for a request of its
// own, so use [Client.LookupAll] for a list of cards.
//
// Only the client's rate limit bounds the number of requests in flight. If a token
// source, a limiter, a cache or an HTTP transport panics, the panic reaches the callers
// that wait.
type Loader struct {
	client *Client
	o      LoaderOptions
	opts   []Option
	store  *store

	loads, hits, stale, coalesced, requests atomic.Int64

	mu       sync.Mutex
	pending  []*load          // that have not left; most often one
	inFlight map[string]*load // by identifier, until its result is there
	detached int              // requests that all their callers have left
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

// NewLoader returns a loader that sends its requests with c. opts are the options of
// each request. It fails with [ErrInvalidArgument] if NewClient did not make c, or if
// PrefixLength or an option is unusable.
func NewLoader(c *Client, o LoaderOptions, opts ...Option) (*Loader, error) {
	if c == nil || c.core == nil {
		return nil, &Error{Operation: "new loader", Err: transport.Invalid("the client was not made by NewClient")}
	}
	if err := cmp.Or(checkPrefix(o.PrefixLength), c.core.CheckOptions(opts)); err != nil {
		return nil, &Error{Operation: "new loader", Err: err}
	}
	o.Window = max(0, cmp.Or(o.Window, 2*time.Millisecond))
	o.MaxDetached = cmp.Or(o.MaxDetached, 16)
	return &Loader{
		client: c, o: o, opts: opts,
		store:    newStore("load", o.Memory, defaultEntries, o.Cache, o.Enhanced, o.Ranges),
		inFlight: map[string]*load{},
	}, nil
}

// Load looks up one card. You may change the result. In a result from the cache,
// PANOrToken and CorrelationID are "". An unknown card is not an error: see
// [Result.Card]. It is cached as well: see [CacheOptions.NegativeTTL]. An empty card is
// sent as an item without one.
//
// A Loader does not pause as LookupAll does. While the service hangs, each Load of a
// card that is not cached takes until its deadline. With [CacheOptions.StaleFor], a
// card that is still in the cache is served at once.
//
// Every error is an [*Error]: the failure of the request, [ErrMissing],
// [ErrBadResponse] for an item that cannot be read, the end of ctx, or [ErrLocalLimit]
// as soon as the service asks for a pause that outlasts the deadline. The last two also
// match the last failure of the request, such as [ErrServer] or [ErrRateLimited]. If
// the service refuses a request, all its cards fail: look each up alone with
// [Client.Lookup].
//
// The call ends at the deadline of ctx, or after 30 seconds if ctx has none. ctx ends
// only this call. The request goes on for the other callers that wait for it. If there
// are none, [LoaderOptions.MaxDetached] decides, and it ends after at most 30 seconds.
// The request has the context values, such as a trace, of the caller that began it.
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
			panic(shared.panicked) // here, where the caller can recover
		}
		i := slices.IndexFunc(shared.lookups, func(own *lookup) bool { return own.sent == id })
		switch own := shared.lookups[i]; {
		case own.err == nil:
			return own.result.clone(), nil
		case !shared.abandoned || ctx.Err() != nil:
			return Result{}, own.err
		}
		// It failed because nobody waited for it at a time: this caller asks anew.
	}
	l.hits.Add(1)
	r := known.result(id)
	if r.Stale = !known.isUsable(0); r.Stale {
		l.stale.Add(1)
		l.renew(ctx, id)
	}
	return r, nil
}

// A load is one request of a loader. Its lookups are written before done is
// closed, and read afterwards.
type load struct {
	lookups  []*lookup
	done     chan struct{}
	panicked any

	// When window ends, the request is sent. ctx ends as soon as nobody waits, and with
	// it what has not begun: waits and retries. wireCtx ends the request on the wire,
	// which may go on.
	window, ctx, wireCtx            context.Context
	closeWindow, cancel, cancelWire context.CancelFunc

	// The loader's lock guards these.
	waiters   int
	deadline  time.Time // the earliest of theirs
	sent      bool
	detached  bool // and counted as such
	abandoned bool // nobody waited for it, when it could still have been retried
	attempts  int
	failed    *transport.Failure // of the last attempt that failed
	retrying  chan struct{}      // closed when the next attempt fails
}

// find returns what the memory has for id, or else the request that brings it, for which
// the caller then waits.
func (l *Loader) find(ctx context.Context, id string) (known *entry, shared *load) {
	l.mu.Lock() // or between the two, a request could end and leave its result in memory
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

// wait waits for the end of a request or of ctx. It does not wait if the service has
// asked for a pause that outlasts ctx, which it may do in response to this request.
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

// leave is called when a caller waits no longer, and returns its error, which tells what
// the request has met. What nobody waits for any more is not begun and not retried; on
// the wire it goes on.
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

// observe takes note of each attempt of a request.
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

// renew asks for a card whose result is stale, with nobody waiting.
func (l *Loader) renew(ctx context.Context, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight[id] == nil && l.detached < l.o.MaxDetached && l.renewal.isOver() {
		if b := l.add(ctx, id); b.waiters == 0 {
			l.detach(b)
		}
	}
}

// detach lets a request go on although nobody waits, if there are not too many such.
func (l *Loader) detach(b *load) {
	if !b.detached && l.detached < l.o.MaxDetached {
		b.detached = true
		l.detached++
	}
}

// add puts id into a request that waits for further cards.
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

// loadTimeout is that of a lookup without a deadline.
const loadTimeout = 30 * time.Second

// send sends a request when it is full or its window has passed.
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

// remove makes room for other requests when one has ended.
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
	if !errors.Is(b.wireCtx.Err(), context.Canceled) { // by its callers
		l.renewal.settle(err == nil)
	}
}
