package transport

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/auth"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/flow"
)

type limiterFunc func(context.Context) error

func (f limiterFunc) Wait(ctx context.Context) error { return f(ctx) }

// A Retry-After is the account's after three responses without a success between them, and only after a 429 or
// 503, and for a minute at most. It ends a call whose deadline comes first, and delays no other account.
func TestRetryAfterOfAnAccount(t *testing.T) {
	for code, pause := range map[int]time.Duration{429: time.Minute, 503: time.Minute, 200: 0, 301: 0, 400: 0, 403: 0, 500: 0} {
		synctest.Test(t, func(t *testing.T) {
			limited := func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/a" {
					return reply(code, "", "Retry-After", "86400"), nil
				}
				return reply(200, ""), nil
			}
			network := serve(limited)
			c := newClient(t, network, WithMaxRetries(0))
			get := func(ctx context.Context, account string) Result {
				call := read()
				call.Path, call.Account = "/"+account, account
				return c.do(ctx, call)
			}
			soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			for range 3 {
				get(soon, "b")
				get(soon, "a")
			}
			if pause > 0 {
				r := get(soon, "a")
				if check(t, r.err(), fault.ErrRateLimited, context.DeadlineExceeded); errors.Is(r.err(), fault.ErrLocalLimit) || r.Failure.RetryAfter != pause {
					t.Errorf("%d: %v, after %v", code, r.err(), r.Failure.RetryAfter)
				}
			}
			if r := get(soon, "b"); r.Failure != nil || time.Since(network.began) > time.Second {
				t.Errorf("%d: the other account after %v: %v", code, time.Since(network.began), r.err())
			}
			get(t.Context(), "a")
			if at := network.arrived[len(network.arrived)-1]; at < pause || at > pause+pause/6 {
				t.Errorf("%d: the next call went out after %v", code, at)
			}
		})
	}
}

// A door opens after a while, or fails as if the service is down.
type door struct {
	opens time.Time
	down  error
	held  atomic.Int64 // places in flight
}

func (d *door) Down() error { return d.down }

func (d *door) Acquire(context.Context, flow.Request) (func(flow.Result), error) {
	time.Sleep(time.Until(d.opens))
	d.held.Add(1)
	free := sync.OnceFunc(func() { d.held.Add(-1) })
	return func(flow.Result) { free() }, nil
}

// Calls that have waited for places keep to the rate, and keep no place for that.
func TestWaitForAPlaceKeepsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := serve(status(200))
		c := newClient(t, network, WithRateLimit(0.5, 1))
		d := &door{opens: time.Now().Add(10 * time.Second)}
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() {
				call := read()
				call.Door = d
				c.do(t.Context(), call)
			})
		}
		time.Sleep(11500 * time.Millisecond)
		if held := d.held.Load(); held != 0 {
			t.Errorf("%d places are held by calls that wait", held)
		}
		calls.Wait()
		for i, want := range []time.Duration{10 * time.Second, 12 * time.Second, 14 * time.Second} {
			if late := network.arrived[i] - want; late < 0 || late > 6*time.Second {
				t.Errorf("request %d after %v", i+1, network.arrived[i])
			}
		}
	})
}

// Calls that have waited for a place all go, also if the limiter's queue is longer than they may keep one for nothing.
func TestSlowLimiterLetsAllGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 9
		network := serve(status(200))
		c := newClient(t, network, WithRateLimit(1, 1))
		d := make(onePlace, 1)
		taken, _ := d.Acquire(t.Context(), flow.Request{})
		time.AfterFunc(calls*time.Second, func() { taken(flow.Result{}) }) // all have the limiter's leave by then
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var all sync.WaitGroup
		for range calls {
			all.Go(func() {
				call := read()
				call.Door = d
				if r := c.do(ctx, call); r.Failure != nil {
					t.Error(r.Failure.Condition())
				}
			})
		}
		all.Wait()
		if took := time.Since(network.began); took > 8*calls*time.Second {
			t.Errorf("took %v", took)
		}
		for i, at := range network.arrived {
			if i > 0 && at-network.arrived[i-1] < time.Second-time.Millisecond {
				t.Errorf("requests %d and %d after %v and %v", i, i+1, network.arrived[i-1], at)
			}
		}
	})
}

// A pause that begins at the moment in which a call gets its place keeps the call, too.
func TestPauseBeginsWithThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := status(503, "Retry-After", "30")
		network := serve(refuse, refuse, refuse, status(200))
		c := newClient(t, network, WithMaxRetries(0))
		call := read()
		call.Door = doorFunc(func() {
			for network.requests() < 3 {
				c.get(t.Context())
			}
		})
		if r := c.do(t.Context(), call); r.Failure != nil || network.arrived[3] < 30*time.Second {
			t.Errorf("sent after %v", network.arrived[3])
		}
	})
}

// A doorFunc is called for each place.
type doorFunc func()

func (doorFunc) Down() error { return nil }

func (f doorFunc) Acquire(context.Context, flow.Request) (func(flow.Result), error) {
	f()
	return func(flow.Result) {}, nil
}

// onePlace is a door with one place.
type onePlace chan struct{}

func (onePlace) Down() error { return nil }

func (d onePlace) Acquire(ctx context.Context, _ flow.Request) (func(flow.Result), error) {
	select {
	case d <- struct{}{}:
		free := sync.OnceFunc(func() { <-d })
		return func(flow.Result) { free() }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Attempts that wait for a token together, or in the queue of the limiter when a pause begins,
// keep to the rate and to the pause.
func TestEveryWaitKeepsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := auth.Cached(func(context.Context) (string, time.Time, error) {
			time.Sleep(10 * time.Second)
			return "token", time.Time{}, nil
		})
		refuse := func(*http.Request) (*http.Response, error) {
			time.Sleep(time.Millisecond) // so that all others queue
			return reply(503, "", "Retry-After", "30"), nil
		}
		network := serve(refuse, refuse, refuse, status(200))
		c := newClient(t, network, WithMaxRetries(0), WithRateLimit(1, 1), WithTokenSource(slow))
		var calls sync.WaitGroup
		for range 7 {
			calls.Go(func() { c.get(t.Context()) })
		}
		calls.Wait()
		for i, at := range network.arrived {
			if i == 0 && at != 10*time.Second || i == 3 && at < 42*time.Second || i > 0 && at-network.arrived[i-1] < time.Second-time.Millisecond {
				t.Errorf("request %d after %v", i+1, at)
			}
		}
	})
}
