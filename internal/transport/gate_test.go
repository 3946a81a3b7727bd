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

	"golang.org/x/time/rate"
)

type limiterFunc func(context.Context) error

func (f limiterFunc) Wait(ctx context.Context) error { return f(ctx) }

// TestLimiterIsAskedForEachAttempt proves that repetitions do not pass it by.
func TestLimiterIsAskedForEachAttempt(t *testing.T) {
	var asked atomic.Int64
	network := serve(status(503))
	c := newClient(t, network, WithRetryWait(0, 0), WithLimiter(limiterFunc(func(context.Context) error {
		if asked.Add(1) != int64(network.requests())+1 {
			t.Error("the limiter was not asked right before the request")
		}
		return nil
	})))
	attempts(t, c.get(t.Context()), 4)
	if asked.Load() != 4 {
		t.Errorf("asked %d times", asked.Load())
	}
}

func TestRateLimitSpacesAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := serve(status(503))
		c := newClient(t, network, WithRetryWait(0, 0), WithRateLimit(0.5, 1))
		c.get(t.Context())
		for i, at := range network.arrived {
			if at != time.Duration(i)*2*time.Second {
				t.Errorf("request %d after %v", i+1, at)
			}
		}
	})
}

// TestSlowTokenSourceKeepsTheRate proves that attempts which waited for a token
// together do not set off together.
func TestSlowTokenSourceKeepsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := serve(status(200))
		slow := TokenFunc(func(context.Context) (string, error) { time.Sleep(10 * time.Second); return "token", nil })
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

// TestLimiterRefusal proves that a refusal is told from the service's, comes at
// once, and is a deadline's where it is one.
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

// TestRefusedRepetitionKeepsTheAnswer proves that an error tells both why the
// call ended and what the service had said.
func TestRefusedRepetitionKeepsTheAnswer(t *testing.T) {
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
		answer := status(503, "X-Request-Id", "req-1")
		c := newClient(t, serve(answer), WithLimiter(once(func(context.Context) error { return errors.New("no") })))
		r := c.get(t.Context())
		check(t, r.err(), ErrLocalLimit, ErrServer)
		if r.Failure.StatusCode != 503 || r.Failure.RequestID != "req-1" || asked != 2 {
			t.Errorf("asked %d times, %+v", asked, r.Failure)
		}
		ctx, cancel := context.WithCancel(t.Context())
		c = newClient(t, serve(answer), WithLimiter(once(func(ctx context.Context) error {
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

// TestCancelInTheLimiter proves that who gives up in the queue was not refused.
func TestCancelInTheLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		network := serve(status(200))
		empty := rate.NewLimiter(1e-9, 1)
		empty.Allow()
		r := newClient(t, network, WithLimiter(empty)).get(ctx)
		check(t, r.err(), context.Canceled)
		if took := time.Since(network.began); errors.Is(r.err(), ErrLocalLimit) || took != time.Second {
			t.Errorf("%v after %v", r.err(), took)
		}
	})
}

// TestPauseWhileQueued proves that a pause also holds those whom the limiter let
// through during it.
func TestPauseWhileQueued(t *testing.T) {
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

func TestPauseIsTheLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		g.pause(30 * time.Second)
		g.pause(10 * time.Second)
		if left := g.remaining(); left != 30*time.Second {
			t.Errorf("%v left", left)
		}
		time.Sleep(31 * time.Second)
		if left := g.remaining(); left != 0 {
			t.Errorf("%v left", left)
		}
	})
}

// TestPauseOfAMinute proves that no answer can stop a client for longer.
func TestPauseOfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := serve(status(429, "Retry-After", "86400"), status(200))
		c := newClient(t, network)
		check(t, c.get(t.Context()).err(), ErrRateLimited)
		if r := c.get(t.Context()); r.Failure != nil {
			t.Error(r.err())
		}
		if at := network.arrived[1]; at < time.Minute || at > 70*time.Second {
			t.Errorf("the next call went out after %v", at)
		}
	})
}

// TestOnlyThrottlingPauses proves that a Retry-After of another status concerns
// its own call alone.
func TestOnlyThrottlingPauses(t *testing.T) {
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

func TestCancelDuringAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := serve(status(429, "Retry-After", "30"))
		c := newClient(t, network, WithMaxRetries(0))
		c.get(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		r := c.Do(ctx, write(), nil)
		check(t, r.err(), context.Canceled)
		if took := time.Since(network.began); took != time.Second || r.Outcome != OutcomeNotSent {
			t.Errorf("%v after %v", r.Outcome, took)
		}
	})
}
