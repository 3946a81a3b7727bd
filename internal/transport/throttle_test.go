package transport

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

type limiterFunc func(context.Context) error

func (f limiterFunc) Wait(ctx context.Context) error { return f(ctx) }

// Attempts that waited for a token together still keep to the rate.
func TestSlowTokenSourceKeepsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := serve(status(200))
		fetched := false
		slow := TokenFunc(func(context.Context) (string, error) {
			if !fetched {
				time.Sleep(10 * time.Second)
			}
			fetched = true
			return "token", nil
		})
		c := newClient(t, network, WithRateLimit(1, 1), WithTokenSource(slow))
		var calls sync.WaitGroup
		for range 5 {
			calls.Go(func() { c.get(t.Context()) })
		}
		calls.Wait()
		for i, at := range network.arrived {
			if at != 10*time.Second+time.Duration(i)*time.Second {
				t.Errorf("request %d after %v", i+1, at)
			}
		}
	})
}

// The refusal of a limiter comes at once and has a condition of its own. It matches
// context.DeadlineExceeded if the deadline is its reason.
func TestLimiterRefusal(t *testing.T) {
	own := errors.New("the limiter's own error")
	spent := rate.NewLimiter(rate.Every(time.Minute), 1)
	spent.Allow()
	for _, test := range []struct {
		name     string
		limiter  Limiter
		is       []error
		deadline bool
	}{
		{"rate", spent, nil, true},
		{"own", limiterFunc(func(context.Context) error { return own }), []error{own}, false},
		{"own, of a deadline", limiterFunc(func(context.Context) error { return context.DeadlineExceeded }), nil, true},
		{"rate that never lets anything through", rate.NewLimiter(1, 0), nil, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			network := serve(status(200))
			r := newClient(t, network, WithLimiter(test.limiter)).Do(ctx, write(), nil)
			check(t, r.err(), append(test.is, ErrLocalLimit)...)
			if errors.Is(r.err(), context.DeadlineExceeded) != test.deadline {
				t.Errorf("%s: %v", test.name, r.err())
			}
			if network.requests() != 0 || r.Outcome != OutcomeNotSent || time.Since(network.began) != 0 {
				t.Errorf("%s: %d requests, %v, %v", test.name, network.requests(), r.Outcome, time.Since(network.began))
			}
		})
	}
}

// If the limiter refuses a retry, the error has both reasons: the refusal and the last
// response.
func TestRefusedRetryKeepsTheResponse(t *testing.T) {
	asked := 0
	once := func(after func(context.Context) error) Limiter {
		asked = 0
		return limiterFunc(func(ctx context.Context) error {
			if asked++; asked == 1 {
				return nil
			}
			return after(ctx)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		response := status(503, "X-Request-Id", "req-1")
		no := errors.New("no")
		c := newClient(t, serve(response), WithLimiter(once(func(context.Context) error { return no })))
		r := c.get(t.Context())
		check(t, r.err(), ErrLocalLimit, ErrServer)
		if r.Failure.StatusCode != 503 || r.Failure.RequestID != "req-1" || r.Failure.Cause() != no || asked != 2 {
			t.Errorf("asked %d times, %+v", asked, r.Failure)
		}
		ctx, cancel := context.WithCancel(t.Context())
		c = newClient(t, serve(response), WithLimiter(once(func(ctx context.Context) error {
			cancel()
			return ctx.Err()
		})))
		r = c.get(ctx)
		check(t, r.err(), context.Canceled, ErrServer)
		if errors.Is(r.err(), ErrLocalLimit) {
			t.Errorf("a cancellation is no refusal: %v", r.err())
		}
		attempts(t, r, 1)
	})
}

// A cooldown also holds back attempts that were queueing for the limiter when it began.
func TestCooldownWhileQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := serve(func(*http.Request) (*http.Response, error) {
			time.Sleep(time.Millisecond) // so that all others queue
			return reply(503, "", "Retry-After", "30"), nil
		}, status(200))
		c := newClient(t, network, WithMaxRetries(0), WithRateLimit(1, 1))
		var calls sync.WaitGroup
		for range 5 {
			calls.Go(func() { c.get(t.Context()) })
		}
		calls.Wait()
		for i, at := range network.arrived[1:] {
			if at < 30*time.Second {
				t.Errorf("request %d arrived after %v", i+2, at)
			}
		}
	})
}

func TestLongestCooldownWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g throttle
		g.cooldown(30 * time.Second)
		g.cooldown(10 * time.Second)
		if left := g.remaining(); left != 30*time.Second {
			t.Errorf("%v left", left)
		}
		time.Sleep(30*time.Second - time.Millisecond)
		if _, err := g.wait(t.Context(), &Settings{}, forever); err != nil || g.remaining() != 0 {
			t.Errorf("%v left, %v", g.remaining(), err)
		}
	})
}

// A response can stop a client for a minute at most.
func TestCooldownOfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := serve(status(429, "Retry-After", "86400"), status(200))
		c := newClient(t, network)
		check(t, c.get(t.Context()).err(), ErrRateLimited)
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if c.Throttled(t.Context(), "read") != nil || c.Throttled(soon, "read").RetryAfter != time.Minute {
			t.Error("only a deadline within the pause ends a call by it")
		}
		if r := c.get(soon); !errors.Is(r.err(), ErrRateLimited) || errors.Is(r.err(), ErrLocalLimit) || r.Failure.RetryAfter != time.Minute {
			t.Errorf("%v, after %v", r.err(), r.Failure.RetryAfter)
		}
		if r := c.get(t.Context()); r.Failure != nil {
			t.Error(r.err())
		}
		if at := network.arrived[1]; at < time.Minute || at > 70*time.Second {
			t.Errorf("the next call went out after %v", at)
		}
	})
}

// A Retry-After delays other calls only after a 429 or 503.
func TestOnlyThrottlingCoolsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, code := range []int{200, 301, 400, 403, 500} {
			network := serve(status(code, "Retry-After", "30"), status(200))
			c := newClient(t, network, WithMaxRetries(0))
			c.get(t.Context())
			c.get(t.Context())
			if took := time.Since(network.began); took != 0 {
				t.Errorf("a %d held the next call for %v", code, took)
			}
		}
	})
}
