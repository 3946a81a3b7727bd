package bins

import (
	"context"
	"sync"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// LoaderOptions configure a [Loader]. The zero value is good.
type LoaderOptions struct {
	// Enhanced is sent with every request, as [LookupRequest.Enhanced].
	Enhanced *bool
	// Window is how long a request waits for further cards, and so the most that
	// a lone card waits. Zero is 2 milliseconds; below zero a card waits for none.
	Window time.Duration
	// PrefixLength and Ranges are as in [BulkOptions].
	PrefixLength int
	Ranges       bool
	// Cache is where answers are looked for first and kept afterwards. Nil is a
	// [MemoryCache] of the loader's own.
	Cache Cache
	// Shared hands the same Data to all whom the memory has an answer for, which
	// takes a fifth of the time of a copy for each, and no allocation. None of them
	// may change it then. An answer in use takes some 2 KB more.
	Shared bool
}

// A Loader answers single lookups of many goroutines: those that come within a
// short window travel in one request, and the same card is asked for once. It is
// made by [NewLoader] and safe for concurrent use. It needs no closing: no
// goroutine of it runs while nobody waits. How many requests are in flight is
// bounded by the client's rate limit alone. What a token source, a limiter, a cache
// or an HTTP transport panics with reaches those who wait.
type Loader struct {
	client  *Client
	o       LoaderOptions
	answers *answerStore

	mu      sync.Mutex
	filling *shipment            // nil: none
	flying  map[string]*shipment // by identifier, until answered
}

// A shipment is one request of a loader. Its lookups are written before answered
// is closed, and read afterwards.
type shipment struct {
	lookups  []*lookup
	waiters  int
	answered chan struct{}
	panicked any
	timer    *time.Timer
	ctx      context.Context
	cancel   context.CancelFunc
}

// NewLoader returns a loader that sends through c, with its options.
func NewLoader(c *Client, o LoaderOptions) (*Loader, error) {
	if c == nil || c.core == nil {
		return nil, &Error{Operation: "new loader", Err: transport.Invalid("the client was not made by NewClient")}
	}
	if err := checkPrefix(o.PrefixLength); err != nil {
		return nil, &Error{Operation: "new loader", Err: err}
	}
	if o.Window == 0 {
		o.Window = 2 * time.Millisecond
	}
	return &Loader{
		client: c, o: o,
		answers: newAnswerStore("load", o.Cache, defaultEntries, o.Enhanced, o.Ranges),
		flying:  map[string]*shipment{},
	}, nil
}

// Load looks up one card. The result is a copy of the caller's own, unless it is
// to be [LoaderOptions.Shared]; out of the cache, PANOrToken and CorrelationID are
// "". The error is an [*Error]: the failure of the request, [ErrMissing], the end of
// ctx, or [ErrLocalLimit] at once when the service has asked for a pause beyond the
// deadline. That the service knows nothing of the card is no error: see
// [Result.Card].
//
// The caller's cancellation and deadline are its own: the request goes on for
// the others that wait for it, and ends when nobody does. It has the same 30
// seconds as a lookup without a deadline: give ctx the deadline that you can wait.
// A request that the service refuses fails all its cards; [Client.Lookup] asks for
// one alone.
func (l *Loader) Load(ctx context.Context, card string) (Result, error) {
	switch {
	case l == nil || l.client == nil:
		return Result{}, &Error{Operation: "load", Err: transport.Invalid("the loader was not made by NewLoader")}
	case ctx == nil:
		return Result{}, &Error{Operation: "load", Err: transport.Invalid("the context is nil")}
	case ctx.Err() != nil:
		return Result{}, &Error{Operation: "load", Err: transport.Ended(ctx)}
	}
	id := outgoing(card, l.o.PrefixLength)
	if e := l.answers.remembered(id); e != nil && l.o.Shared {
		return e.sharedResult(id), nil
	} else if e != nil {
		return e.result(id), nil
	}
	if err := checkCard(id); err != nil {
		return Result{}, &Error{Operation: "load", Err: err}
	}
	if paused := l.client.core.Paused(ctx, "load"); paused != nil {
		return Result{}, (*Error)(paused)
	}
	s := l.join(id)
	select {
	case <-s.answered:
	case <-ctx.Done():
		l.leave(s)
		return Result{}, &Error{Operation: "load", Err: transport.Ended(ctx)}
	}
	if s.panicked != nil {
		panic(s.panicked) // here, where the caller can recover
	}
	for _, lookup := range s.lookups {
		if lookup.sent == id {
			return lookup.result(id), lookup.err
		}
	}
	return Result{}, l.answers.missing()
}

// join finds or makes the shipment that brings id.
func (l *Loader) join(id string) *shipment {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.flying[id]; s != nil {
		s.waiters++
		return s
	}
	s := l.filling
	if s == nil {
		s = &shipment{answered: make(chan struct{})}
		s.ctx, s.cancel = context.WithCancel(context.Background())
		l.filling = s
		s.timer = time.AfterFunc(max(0, l.o.Window), func() { l.depart(s) })
	}
	s.waiters++
	s.lookups = append(s.lookups, &lookup{sent: id})
	l.flying[id] = s
	if len(s.lookups) == MaxCards {
		l.filling = nil
		if s.timer.Stop() {
			go l.deliver(s)
		}
	}
	return s
}

// depart closes a shipment whose window has passed, and sends it.
func (l *Loader) depart(s *shipment) {
	l.mu.Lock()
	if l.filling == s {
		l.filling = nil
	}
	l.mu.Unlock()
	l.deliver(s)
}

func (l *Loader) deliver(s *shipment) {
	defer s.cancel()
	d := delivery{}
	defer func() {
		if d.answers == nil && d.err == nil {
			d.broke(recover())
			s.panicked = d.panicked
		}
		l.mu.Lock()
		l.land(s)
		l.mu.Unlock()
		close(s.answered)
		l.answers.share(context.WithoutCancel(s.ctx), d.values)
	}()
	rest := l.answers.resolve(s.ctx, s.lookups)
	if len(rest) == 0 {
		d.answers = []answer{}
		return
	}
	d = l.client.ask(s.ctx, l.answers, rest, l.o.Enhanced, lookupHow{})
	l.answers.keep(d.answers)
	d.give(rest)
	for _, l := range rest {
		l.rest() // its receivers come at once, and each needs its own
	}
}

// land makes room for other shipments with the same identifiers.
func (l *Loader) land(s *shipment) {
	for _, lookup := range s.lookups {
		if l.flying[lookup.sent] == s {
			delete(l.flying, lookup.sent)
		}
	}
}

// leave ends a request that nobody waits for any more. Whoever comes after that
// starts another.
func (l *Loader) leave(s *shipment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.waiters--; s.waiters > 0 {
		return
	}
	s.cancel()
	s.timer.Stop()
	if l.filling == s {
		l.filling = nil
	}
	l.land(s)
}
