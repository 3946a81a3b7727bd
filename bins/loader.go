package bins

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
	flow "github.com/carddata/carddata-go/internal/oldflow"
	"github.com/carddata/carddata-go/internal/transport"
)

// LoaderOptions configure a [Loader]. A checkout sets PrefixLength and Memory, and the client's
// attempt timeout: see [Loader].
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
// and results are cached. For a list of cards, use [Client.LookupAll].
//
// A checkout sets three things, as the Example of Loader does:
//
//   - [LoaderOptions.PrefixLength]: the cards of one BIN share a cached result. Without it, no card
//     number is cached.
//   - [CacheOptions.StaleFor]: a cached card is served at once, even if it has expired and the
//     service is down. A restart loses the cache, unless there is a [Cache] outside the process that
//     answers within a tenth of a caller's deadline.
//   - [WithAttemptTimeout]: longer than the service takes, such as two seconds, and not your callers' 80
//     milliseconds. A request goes on without retries after its callers have left, so that later
//     callers find its results in the cache. At most 16 such requests do.
//
// The requests in flight adapt to what the service accepts, and to how long it takes. While a
// request waits for its turn, further cards join it. If the service becomes slower than your
// deadlines, fewer requests are sent, and the cache fills slowly. After a few failures in a row, also
// after 401, Load fails at once with [ErrSuspended], and one load at a time is sent as a probe, at the
// latest five seconds after the last one, or after a Retry-After. A service that becomes many times
// slower at once looks down until its first responses come. A loader that starts while the service
// does not respond finds that out after the attempt timeout.
//
// Make one with [NewLoader] when the program starts. It is safe for concurrent use, and needs
// no Close.
type Loader struct {
	client *Client
	o      LoaderOptions
	store  *store
	flow   *flow.Window
	pauses transport.PauseLog

	settings *transport.Settings // of each request

	loads, hits, stale, coalesced, requests, unread atomic.Int64

	mu       sync.Mutex
	pending  []*load          // that have not left; most often one
	inFlight map[string]*load // by identifier, until the result is there
	detached int              // requests without waiting callers
	worked   time.Time        // when the service sent a result last; zero: never
	overtook time.Time        // when the last of the requests with a result left
	failure  error            // the last failure that other requests may meet, too
}

// LoaderStats count what a loader has done so far, and say how it sees the service.
type LoaderStats struct {
	Loads     int64 // calls of Load with a usable card, before the end of their context
	Hits      int64 // calls served from memory
	Stale     int64 // hits with an expired result; see [CacheOptions.StaleFor]
	Coalesced int64 // calls that joined another call for the same card
	Requests  int64 // requests sent, retries included
	Unread    int64 // members of the items received that could not be read: see [Result.Unread]

	// Level, Reason, Paused and PausedUntil are those of [BulkProgress].
	Level       float64
	Reason      string
	Paused      bool
	PausedUntil time.Time
}

// Stats returns what the loader has done so far.
func (l *Loader) Stats() LoaderStats {
	state := l.flow.State()
	return LoaderStats{
		Loads: l.loads.Load(), Hits: l.hits.Load(), Stale: l.stale.Load(), Coalesced: l.coalesced.Load(), Requests: l.requests.Load(),
		Unread: l.unread.Load(), Level: state.Level, Reason: state.Why, Paused: state.Paused, PausedUntil: l.client.core.Probes("", state.Next),
	}
}

// NewLoader returns a loader that sends its requests with c. opts are the options of each
// request. It fails with [ErrInvalidArgument] if NewClient did not make c, or if PrefixLength
// or an option is unusable.
func NewLoader(c *Client, o LoaderOptions, opts ...CallOption) (*Loader, error) {
	settings, err := c.settings(opts)
	if err := cmp.Or(err, checkPrefix(o.PrefixLength)); err != nil {
		return nil, &Error{Operation: "new loader", Err: err}
	}
	o.Window = max(0, cmp.Or(o.Window, 2*time.Millisecond))
	l := &Loader{
		client: c, o: o, settings: settings,
		store:    newStore("load", o.Memory, o.Cache, o.Enhanced),
		inFlight: map[string]*load{},
		flow:     flow.NewPrompt(func(below time.Duration) time.Duration { return c.core.Jitter(context.Background(), below) }),
		pauses:   transport.PauseLog{Client: c.core, Call: transport.Call{Operation: "load", Method: http.MethodPost, Route: lookupRoute}},
	}
	l.store.staleFirst = true
	return l, nil
}

// Load looks up one card. You may change the result. An unknown card is not an error: see
// [Result.Card]. Trim and check what a customer typed: if the service refuses a request, all its
// cards fail.
//
// The call ends at the deadline of ctx, or after 30 seconds if ctx has none. If the load had to wait
// in this process, it ends as soon as less time is left than a response usually takes, also with
// context.DeadlineExceeded. So test the error, and not ctx.
//
// Other errors are the failure of the request, [ErrInvalidArgument] for an empty card, [ErrMissing],
// [ErrBadResponse] for an item that is no object, [ErrSuspended] while the service is down, and
// [ErrRateLimited] as soon as the service asks for a pause beyond the deadline. An error of the
// deadline, a pause or an outage also matches what a request last failed with.
//
// A request has the context values, such as a trace, of the caller that began it.
func (l *Loader) Load(ctx context.Context, card string) (Result, error) {
	fail := func(err error) (Result, error) { return Result{}, &Error{Operation: "load", Err: err} }
	switch {
	case l == nil || l.client == nil:
		return fail(fault.Invalid("the loader was not made by NewLoader"))
	case ctx == nil:
		return fail(fault.Invalid("the context is nil"))
	case ctx.Err() != nil:
		return fail(fault.Ended(ctx))
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
		// The request ended for others. This caller still waits, so try again.
	}
	l.hits.Add(1)
	r := known.result()
	if r.Stale = !known.isUsable(0); r.Stale {
		l.stale.Add(1)
		if time.Now().UnixNano() >= known.asked.Load() {
			l.renew(ctx, id, known)
		}
	}
	return r, nil
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
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline, _ = shared.wireCtx.Deadline() // it waits as long as the request lasts
	}
	if deadline.Before(shared.earliest) {
		shared.earliest = deadline
	}
	if deadline.After(shared.latest) {
		shared.latest = deadline
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
				end = &fault.Failure{Operation: "load", Err: fault.Ended(ctx)}
			}
		}
		return l.leave(b, end)
	}
}

// leave is called when a caller stops waiting. It returns the caller's error, with the last
// failure of the request. Requests without waiters are neither started nor retried; one
// already on the wire continues.
func (l *Loader) leave(b *load, end *fault.Failure) *Error {
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
		switch { // if it is not known how long a request takes, others need its place
		case b.place == 0 || l.flow.Overdue() > 0:
		case l.flow.State().Paused:
			l.failOverdue(b)
		case l.worked.IsZero():
			l.giveBack(b)
		}
	}
	e := Error(*end)
	if b.failed != nil {
		e = Error(*b.failed)
		e.Operation, e.Err = end.Operation, fault.NewError(end.Err.Error()+": "+e.Err.Error(), e.Err, end.Err)
	}
	e.Attempts, e.RetryAfter = b.attempts, max(b.pause, end.RetryAfter, e.RetryAfter)
	return &e
}
