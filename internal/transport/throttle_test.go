package transport

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/auth"
	"github.com/carddata/carddata-go/internal/fault"
)

type limiterFunc func(context.Context) error

func (f limiterFunc) Wait(ctx context.Context) error { return f(ctx) }

// A Retry-After delays other calls only after a 429 or 503, and for a minute at most. It ends a
// call whose deadline comes first.
func TestCooldown(t *testing.T) {
	for code, pause := range map[int]time.Duration{429: time.Minute, 503: time.Minute, 200: 0, 301: 0, 400: 0, 403: 0, 500: 0} {
		synctest.Test(t, func(t *testing.T) {
			network := serve(status(code, "Retry-After", "86400"), status(200))
			c := newClient(t, network)
			c.get(t.Context())
			soon, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if pause > 0 {
				if c.Throttled(t.Context(), "read") != nil || c.Throttled(soon, "read").RetryAfter != pause {
					t.Errorf("%d: only a deadline within the pause ends a call by it", code)
				}
				r := c.get(soon)
				if check(t, r.err(), fault.ErrRateLimited, context.DeadlineExceeded); errors.Is(r.err(), fault.ErrLocalLimit) || r.Failure.RetryAfter != pause {
					t.Errorf("%d: %v, after %v", code, r.err(), r.Failure.RetryAfter)
				}
			}
			if r := c.get(t.Context()); r.Failure != nil {
				t.Errorf("%d: %v", code, r.err())
			}
			if at := network.arrived[1]; at < pause || at > pause+pause/6 {
				t.Errorf("%d: the next call went out after %v", code, at)
			}
		})
	}
}

// Of two responses with Retry-After, the one that asks for more counts, whichever comes last.
func TestLongerCooldownCounts(t *testing.T) {
	for pauses, seconds := range [][]string{1: {"30", "1"}, 2: {"1", "30"}} {
		if seconds == nil {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			after := func(wait time.Duration, seconds string) func(*http.Request) (*http.Response, error) {
				return func(*http.Request) (*http.Response, error) {
					time.Sleep(wait)
					return reply(429, "", "Retry-After", seconds), nil
				}
			}
			network := serve(after(100*time.Millisecond, seconds[0]), after(200*time.Millisecond, seconds[1]), status(200))
			var log bytes.Buffer
			c := newClient(t, network, WithMaxRetries(0), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			var calls sync.WaitGroup
			for range 2 {
				calls.Go(func() { c.get(t.Context()) })
			}
			if calls.Wait(); c.get(t.Context()).Failure != nil || time.Since(network.began) < 30*time.Second {
				t.Errorf("Retry-After %q: the next call was answered after %v", seconds, time.Since(network.began))
			}
			if n := strings.Count(log.String(), "msg=pause"); n != pauses { // a longer one is news
				t.Errorf("Retry-After %q: %d pauses are logged", seconds, n)
			}
		})
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
		network := serve(refuse, status(200))
		c := newClient(t, network, WithMaxRetries(0), WithRateLimit(1, 1), WithTokenSource(slow))
		var calls sync.WaitGroup
		for range 5 {
			calls.Go(func() { c.get(t.Context()) })
		}
		calls.Wait()
		for i, at := range network.arrived {
			if i == 0 && at != 10*time.Second || i == 1 && at < 40*time.Second || i > 1 && at-network.arrived[i-1] < time.Second-time.Millisecond {
				t.Errorf("request %d after %v", i+1, at)
			}
		}
	})
}
