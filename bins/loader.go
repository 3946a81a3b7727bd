package bins

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/flow"
	"github.com/carddata/carddata-go/internal/transport"
)

// LoaderOptions configure a [Loader]. A checkout sets PrefixLength and Memory.
type LoaderOptions struct {
	// Enhanced is sent with every request: see [LookupRequest.Enhanced].
	Enhanced *bool
	// Window is how long a card waits for further cards. Zero is 2 milliseconds. Below zero it does not
	// wait.
	Window time.Duration
	// PrefixLength is how many digits are sent of a card number: see [BulkOptions.PrefixLength].
	PrefixLength int
	// Memory caches results by what is sent. Nil makes a [MemoryCache] for this loader. To serve cards
	// through an outage, set one with [CacheOptions.StaleFor].
	Memory *MemoryCache
	// Cache is a second cache, outside the process, for what Memory does not have. Nil is none.
	Cache Cache
}

// A Loader looks up single cards for many goroutines, as in a checkout. Calls within a
// short window share one request, concurrent calls for the same card become one lookup,
// and results are cached. Make one with [NewLoader] when the program starts.
//
// A checkout sets three things, as the Example of Loader does:
//
//   - [LoaderOptions.PrefixLength]: the cards of one BIN share a cached result. Without it, no result of
//     a card number (12 digits or more) is cached.
//   - [CacheOptions.StaleFor]: an expired card is served at once, also while the service is down. A shared
//     [Cache] keeps it through a restart.
//   - [WithAttemptTimeout], given to NewLoader: longer than the service takes, such as two seconds, even if
//     your callers wait for 80 milliseconds. Up to 16 requests go on after their callers have left, so that
//     later callers find the results in the cache.
//
// While a request waits for its turn, further cards collect in the next one.
//
// A bad card fails alone. A request that is refused, such as by 400 or 422, is sent again with each of its
// cards alone. So is one that fails twice with a 5xx but 503, a timeout, a broken connection or a
// page. These cards go alone for a minute.
type Loader struct {
	client   *Client
	o        LoaderOptions
	store    *store
	window   *flow.Window
	pauses   transport.PauseLog
	settings *transport.Settings // of each request

	loads, hits, stale, coalesced, requests, unread atomic.Int64

	closing chan struct{} // closed by Close
	tasks   sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	inFlight map[string]*load // by identifier, until the result is there
	group    *group           // that collects cards; nil: none does
	ready    []*load          // that wait for a request, in order
	leaving  *request         // that has not left yet; nil: there is none
	detached int              // requests in flight without waiting callers
	failure  error            // the last one that other requests may meet, too
	alone    map[uint64]time.Time
}

// LoaderStats say what a loader has done, and how it sees the service.
type LoaderStats struct {
	Loads     int64 // calls of Load with a usable card, before the end of their context
	Hits      int64 // calls served from memory
	Stale     int64 // hits with an expired result; see [CacheOptions.StaleFor]
	Coalesced int64 // calls that joined another call for the same card
	Requests  int64 // requests sent, retries included
	Unread    int64 // members of the items received that could not be read: see [Result.Unread]

	Stats // of this loader; Waiting counts the calls of Load whose request has not left
}

// ErrClosed: the loader was closed. Make another one.
var ErrClosed = fault.NewCondition("closed", "the loader is closed", false)

// Stats returns what the loader has done.
func (l *Loader) Stats() LoaderStats {
	s := LoaderStats{
		Loads: l.loads.Load(), Hits: l.hits.Load(), Stale: l.stale.Load(), Coalesced: l.coalesced.Load(), Requests: l.requests.Load(),
		Unread: l.unread.Load(), Stats: statsOf(l.window.State()),
	}
	s.Waiting = 0
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, own := range l.inFlight {
		if own.request == nil || !own.request.sent {
			s.Waiting += own.waiters
		}
	}
	return s
}

// NewLoader returns a loader that sends with c and opts. It fails with [ErrInvalidArgument] if PrefixLength
// or an option is unusable.
func NewLoader(c *Client, o LoaderOptions, opts ...CallOption) (*Loader, error) {
	settings, err := c.settings(opts)
	if err := cmp.Or(err, checkPrefix(o.PrefixLength)); err != nil {
		return nil, &Error{Operation: "new loader", Err: err}
	}
	o.Window = max(0, cmp.Or(o.Window, 2*time.Millisecond))
	bounded := *settings
	bounded.AttemptTimeout = cmp.Or(bounded.AttemptTimeout, loadTimeout) // no caller's deadline ends an attempt
	l := &Loader{
		client: c, o: o, settings: &bounded,
		store:    newStore(operationLoad, o.Memory, o.Cache, o.Enhanced),
		window:   c.core.NewWindow(context.Background()),
		pauses:   transport.PauseLog{Client: c.core, Call: transport.Call{Operation: operationLoad, Method: http.MethodPost, Route: lookupRoute}},
		closing:  make(chan struct{}),
		inFlight: map[string]*load{},
		alone:    map[uint64]time.Time{},
	}
	l.store.staleFirst = true
	return l, nil
}

const (
	operationLoad = "load"
	// loadTimeout equals the timeout of a lookup without a deadline.
	loadTimeout = 30 * time.Second
)

// Load looks up one card. You may change the result. An unknown card is not an error: see
// [Result.Card].
//
// The call ends at the deadline of ctx, or after 30 seconds if ctx has none. A load that waits for its turn
// ends early, with context.DeadlineExceeded, when less time is left than a response usually takes: test the
// error, and not ctx. It also matches what a request last failed with.
//
// Other errors are those of [BulkResult.Err], [ErrRateLimited] if the service has asked for a pause beyond
// the deadline, and [ErrClosed]. A request has the context values, such as a trace, of the caller that
// began it.
func (l *Loader) Load(ctx context.Context, card string) (Result, error) {
	fail := func(err error) (Result, error) { return Result{}, &Error{Operation: operationLoad, Err: err} }
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
	deadline, bounded := ctx.Deadline()
	if !bounded {
		deadline = time.Now().Add(l.o.Window + loadTimeout)
	}
	for {
		known, own := l.find(ctx, id, deadline)
		switch {
		case known != nil:
			return l.hit(ctx, id, known), nil
		case own == nil:
			return fail(ErrClosed)
		}
		if err := l.wait(ctx, own, deadline); err != nil {
			return Result{}, err
		}
		switch {
		case own.panicked != nil:
			panic(own.panicked) // the caller can recover here
		case own.stale: // the memory has it now
		case own.err == nil:
			return own.result.clone(), nil
		case own.over.IsZero() || !own.over.Before(deadline):
			return Result{}, own.err
		}
		// Its request ended for others, who had less time. This caller still waits, so try again.
	}
}

// hit returns a result from memory.
func (l *Loader) hit(ctx context.Context, id string, known *entry) Result {
	l.hits.Add(1)
	r := known.result()
	if r.Stale = !known.isUsable(0); r.Stale {
		l.stale.Add(1)
		if time.Now().UnixNano() >= known.asked.Load() {
			l.renew(ctx, id, known)
		}
	}
	return r
}

// find returns the memory's result for id, or else the load that the caller must wait for; neither if
// the loader is closed.
func (l *Loader) find(ctx context.Context, id string, deadline time.Time) (*entry, *load) {
	l.mu.Lock() // held for both, because a request could end in between and leave its result in memory
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil
	}
	if known := l.store.findStale(id); known != nil {
		return known, nil
	}
	own := l.inFlight[id]
	if own == nil {
		own = l.add(ctx, id)
	} else {
		l.coalesced.Add(1)
	}
	own.joins(deadline)
	return nil, own
}

// wait waits for the end of a load or of ctx. It fails at once if the service has asked for a pause
// that outlasts ctx.
func (l *Loader) wait(ctx context.Context, own *load, deadline time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	end := l.client.core.Throttled(ctx, operationLoad)
	if end == nil {
		select {
		case <-own.done:
			return nil
		case <-ctx.Done():
			end = &fault.Failure{Operation: operationLoad, Err: fault.Ended(ctx)}
		case <-l.closing:
			return &Error{Operation: operationLoad, Err: ErrClosed}
		}
	}
	return l.leave(ctx, own, end)
}

// leave is called when a caller stops waiting. It returns the caller's error, with the last
// failure of the request.
func (l *Loader) leave(ctx context.Context, own *load, end *fault.Failure) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	own.waiters--
	r := own.request
	if r == nil {
		return (*Error)(end)
	}
	l.goesOn(r, ctx.Err())
	e := Error(*end)
	if r.failed != nil {
		e = Error(*r.failed)
		e.Operation, e.Err = end.Operation, fault.NewError(end.Err.Error()+": "+e.Err.Error(), e.Err, end.Err)
	}
	e.Attempts, e.RetryAfter = r.attempts, max(end.RetryAfter, e.RetryAfter)
	return &e
}

// Close ends the loader, and returns when no goroutine of it is left. Requests in flight end. Loads that wait, and
// later ones, fail with [ErrClosed]. The caches stay open. Further calls do nothing.
func (l *Loader) Close() {
	if l == nil || l.client == nil {
		return
	}
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.closing)
		for _, own := range l.inFlight {
			if own.request != nil {
				own.request.end(ErrClosed)
			}
		}
	}
	l.mu.Unlock()
	l.tasks.Wait()
	l.store.remote.wait()
}
