package transport

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"time"
)

// A TokenSource is declared anew, with the same method, in the packages that
// take one.
type TokenSource interface {
	Token(ctx context.Context) (string, error)
}

const maxToken = 8 << 10 // servers commonly bound the whole header by 8 KiB

// StaticToken keeps the token in a closure, out of the reach of fmt.
func StaticToken(token string) TokenSource { return staticToken(func() string { return token }) }

type staticToken func() string

func (f staticToken) Token(context.Context) (string, error) { return f(), nil }

// TokenFunc makes a TokenSource of a function. It is asked one question at a time by all
// options that it is given to: functions cannot be compared, and what holds one can.
func TokenFunc(f func(context.Context) (string, error)) TokenSource {
	return &tokenFunc{f, make(chan struct{}, 1)}
}

type tokenFunc struct {
	f      func(context.Context) (string, error)
	asking chan struct{} // of every credential with this source
}

func (t *tokenFunc) Token(ctx context.Context) (string, error) { return t.f(ctx) }

// checkToken names the mistakes that are made when a token is copied: the header's own
// scheme, and what a file ends in. Left to net/http, the first would be a 401, and the
// second an error that quotes the token.
func checkToken(token string) error {
	switch s := strings.TrimSpace(token); {
	case token == "":
		return Invalid("the credential is empty")
	case len(s) >= 6 && strings.EqualFold(s[:6], "Bearer") && (len(s) == 6 || !IsVisible(s[6:7])):
		return Invalid("the credential begins with \"Bearer \", which the library adds itself")
	case strings.TrimRight(token, "\r\n") != token:
		return Invalid("the credential ends in a line break, as a file does")
	case len(token) > maxToken || !IsVisible(token):
		return Invalid("the credential is not one run of visible ASCII characters (%d at most)", maxToken)
	}
	return nil
}

// IsVisible tells whether a value can travel in a header unchanged: net/http
// would trim spaces, and a line break would begin another header.
func IsVisible(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0
}

// A credential is a TokenSource and what is known of it. The option that took
// the source makes it, so that all clients and calls of that option share it. Those of
// several options share no more than the turn to ask, and only where the source brings it.
type credential struct {
	source TokenSource

	asking               chan struct{} // holds a value while a source of the caller's is being asked
	refused, replacement string        // the last token that was refused, and what came in its place; belong to who asks
}

// newCredential refuses what can be known to be unusable before a call.
func newCredential(source TokenSource) (*credential, error) {
	c, missing := &credential{source: source, asking: make(chan struct{}, 1)}, source == nil
	switch s := source.(type) {
	case staticToken:
		return c, checkToken(s())
	case *cachedToken:
		missing = s.fetch == nil
	case *tokenFunc:
		c.asking, missing = s.asking, s.f == nil
	}
	return c, require(!missing, "the token source is nil")
}

// token asks the source and checks what it returns. With a refused token it asks
// for what replaces it: possibly the same, when the source has nothing newer. The
// source's own error stays reachable, but its text, which may quote a credential,
// is not repeated.
func (c *credential) token(ctx context.Context, refused string) (string, error) {
	token, err := c.ask(ctx, refused)
	switch {
	case err != nil && ctx.Err() != nil:
		return "", NewError("the token source did not return in time", ErrCredential, err)
	case err != nil:
		return "", NewError("the token source failed", ErrCredential, err)
	}
	if err := checkToken(token); err != nil {
		return "", NewError("the token source returned an unusable token: "+err.Error(), ErrCredential)
	}
	return token, nil
}

// ask returns by the end of ctx even if the source does not. Many do not: those
// of x/oauth2 have no context to end by, and wait for a token endpoint as long
// as their http.Client does.
//
// The source is therefore asked on a goroutine, and one question at a time. A
// source that hangs keeps one goroutine, however many calls have waited for it
// and left, and whoever comes later waits for that one. A source that keeps its
// token loses nothing by this; one that fetches a token for each question is
// asked more slowly, and its token endpoint is spared. Calls do not share a
// reply, as a source may go by the context of each.
func (c *credential) ask(ctx context.Context, refused string) (string, error) {
	switch c.source.(type) {
	case staticToken, *cachedToken: // of this package, and return by the end of ctx
		return c.question(ctx, refused)
	}
	select {
	case c.asking <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	// When a token expires, every call in flight is refused with it at once. The first
	// to ask gets what replaces it, and so do those who come with the old one later. A
	// source that drops its token whenever it hears of a refused one, whichever that
	// was, would drop the new one each time.
	if refused != "" && refused == c.refused {
		defer func() { <-c.asking }()
		return c.replacement, nil
	}
	// Who leaves early leaves the place taken until the source returns, so that the next
	// call waits for it, and not beside it.
	return NewFuture(func() (string, error) { return c.question(ctx, refused) }, func(token string, err error) {
		if refused != "" && token != refused && err == nil && checkToken(token) == nil {
			c.refused, c.replacement = refused, token
		}
		<-c.asking
	}).Wait(ctx)
}

// question tells a source that can be told that its token was refused, and asks.
func (c *credential) question(ctx context.Context, refused string) (string, error) {
	if told, ok := c.source.(interface{ Refused(token string) }); ok && refused != "" {
		told.Refused(refused)
	}
	return c.source.Token(ctx)
}

// A Future is what a function of the caller's comes to, on a goroutine of its own: who
// waits for it can leave.
type Future[T any] struct {
	done     chan struct{} // closed when there is one
	value    T
	err      error
	panicked any
	returned bool // neither did it panic, nor end its goroutine, as t.FailNow does
}

// NewFuture begins. ended is called on that goroutine before anybody has the value.
func NewFuture[T any](f func() (T, error), ended func(T, error)) *Future[T] {
	r := &Future[T]{done: make(chan struct{})}
	go func() {
		defer func() {
			r.panicked = recover()
			ended(r.value, r.err)
			close(r.done)
		}()
		r.value, r.err = f()
		r.returned = true
	}()
	return r
}

// Wait ends the goroutine that waits as the function ended its own: a panic comes
// where the caller can recover from it.
func (r *Future[T]) Wait(ctx context.Context) (value T, err error) {
	select {
	case <-r.done:
	case <-ctx.Done():
		return value, ctx.Err()
	}
	if r.panicked != nil {
		panic(r.panicked)
	}
	if !r.returned {
		runtime.Goexit()
	}
	return r.value, r.err
}

// CachedToken makes a TokenSource of a function that fetches a token, and keeps
// what it fetched.
func CachedToken(fetch func(ctx context.Context) (token string, expires time.Time, err error)) TokenSource {
	return &cachedToken{fetch: fetch}
}

type cachedToken struct {
	fetch func(ctx context.Context) (string, time.Time, error)

	mu       sync.Mutex
	token    func() string // nil: none
	expires  time.Time     // zero: never
	renew    time.Time     // when to fetch the next one, while this one still serves
	inflight *fetching
}

// A fetching is one fetch, for all that wait for it. It ends when nobody does.
type fetching struct {
	*Future[string]
	cancel   context.CancelFunc
	waiting  int // a renewal has one that never leaves
	canceled bool
}

// renewalTimeout bounds a renewal, for which no caller has set a deadline.
const renewalTimeout = time.Minute

// Token returns the token that is there, or waits for one until ctx ends. Shortly
// before a token expires, a call begins to fetch the next one and does not wait for
// it: a slow token endpoint costs nobody anything while there is a valid token.
func (c *cachedToken) Token(ctx context.Context) (string, error) {
	c.mu.Lock()
	now := time.Now()
	valid := c.token != nil && (c.expires.IsZero() || now.Before(c.expires))
	if c.inflight == nil && (!valid || !c.expires.IsZero() && !now.Before(c.renew)) {
		c.begin(ctx, valid)
	}
	if valid {
		defer c.mu.Unlock()
		return c.token(), nil
	}
	f := c.inflight
	f.waiting++
	c.mu.Unlock()
	token, err := f.Wait(ctx)
	c.mu.Lock()
	if f.waiting--; f.waiting == 0 && ctx.Err() != nil {
		f.canceled = true
		f.cancel()
	}
	abandoned := err != nil && f.canceled && ctx.Err() == nil
	c.mu.Unlock()
	// A fetch that was ended for want of callers says nothing to one who joined it after
	// that, and fetches for itself.
	if abandoned {
		return c.Token(ctx)
	}
	return token, err
}

// begin fetches on a goroutine, so that who waits can leave. The fetch has the
// values of the context that began it.
func (c *cachedToken) begin(ctx context.Context, renewal bool) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &fetching{cancel: cancel}
	if renewal {
		ctx, cancel = context.WithTimeout(ctx, renewalTimeout)
		f.waiting = 1
	}
	c.inflight = f
	var expires time.Time
	f.Future = NewFuture(func() (token string, err error) {
		token, expires, err = c.fetch(ctx)
		return token, err
	}, func(token string, err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		now := time.Now()
		switch left := expires.Sub(now); {
		case err == nil && checkToken(token) == nil:
			// In the last tenth to fifth of its life: early enough for a slow endpoint, and late
			// enough for a token that lives a minute. Jitter keeps the instances of a service
			// apart, which began together.
			c.token, c.expires, c.renew = hide(token), expires, now.Add(left-left/10-rand.N(max(left/10, 1)))
		case renewal:
			c.renew = now.Add(c.expires.Sub(now) / 4) // and then again, in ever shorter steps
		}
		c.inflight = nil
		cancel()
	})
}

// Refused drops a token that the service refused, however long it should live. One that
// has been replaced in the meantime is none of its concern: of the many calls that were
// refused together, the first has dropped it already.
func (c *cachedToken) Refused(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token != nil && c.token() == token {
		c.token = nil
	}
}
