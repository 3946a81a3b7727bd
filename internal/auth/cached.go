package auth

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/carddata/carddata-go/internal/mask"
)

// Cached makes a TokenSource from a function that fetches a token, and keeps the token.
func Cached(fetch func(ctx context.Context) (token string, expires time.Time, err error)) Source {
	return &cachedToken{fetch: fetch}
}

type cachedToken struct {
	fetch func(ctx context.Context) (string, time.Time, error)

	mu       sync.Mutex
	token    func() string // nil: none
	expires  time.Time     // zero: never
	renew    time.Time     // when to fetch the next token, while this one is still valid
	inflight *fetched      // nil: none
}

// A fetched token is the result of a fetch, which several calls may wait for.
type fetched struct {
	done     chan struct{} // closed when the result is there
	token    string
	err      error
	panicked any
}

// fetchTimeout bounds a fetch. No caller's deadline does: calls that are shorter than the
// fetch would cancel each one, and never get a token.
const fetchTimeout = 30 * time.Second

// Token returns the cached token, or waits for one until ctx ends. Shortly before a token
// expires, a call starts the next fetch and does not wait for it. So a slow token endpoint
// delays nobody while a token is valid.
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
	c.mu.Unlock()
	select {
	case <-f.done:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if f.panicked != nil {
		panic(f.panicked) // on the goroutine of a caller, who can recover
	}
	return f.token, f.err
}

// begin fetches on a goroutine, so that a caller can stop waiting. The fetch keeps the values
// of the context that began it.
func (c *cachedToken) begin(ctx context.Context, renewal bool) {
	f := &fetched{done: make(chan struct{})}
	c.inflight = f
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	go func() {
		defer cancel()
		var expires time.Time
		defer func() {
			f.panicked = recover()
			c.keep(f, expires, renewal)
			close(f.done)
		}()
		f.token, expires, f.err = c.fetch(ctx)
	}()
}

// keep keeps the token of a fetch that has ended.
func (c *cachedToken) keep(f *fetched, expires time.Time, renewal bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inflight = nil
	now := time.Now()
	switch left := expires.Sub(now); {
	case f.err == nil && checkToken(f.token) == nil:
		// Renew in the last tenth to fifth of the token's life. This is early enough for
		// a slow endpoint, and late enough for a token that lives a minute. Jitter
		// spreads the instances of a service that started together.
		c.token, c.expires, c.renew = mask.Hide(f.token), expires, now.Add(left-left/10-rand.N(max(left/10, 1)))
	case renewal:
		c.renew = now.Add(c.expires.Sub(now) / 4) // retry in ever shorter steps
	}
}

// Refused drops a refused token before it expires. It ignores a token that was replaced
// meanwhile: of many calls that were refused together, only the first drops the token.
func (c *cachedToken) Refused(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token != nil && c.token() == token {
		c.token = nil
	}
}
