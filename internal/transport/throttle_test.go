package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

type limiterFunc func(context.Context) error

func (f limiterFunc) Wait(ctx context.Context) error { return f(ctx) }

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

// TestRefusedRetryKeepsTheResponse proves that an error tells both why the
// call ended and what the service had said.
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

// TestPauseWhileQueued proves that a pause also holds those whom the limiter let
// through during it.
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
		time.Sleep(30*time.Second - time.Millisecond) // and the last of it counts
		if err := g.wait(t.Context(), &Settings{}); err != nil || g.remaining() != 0 {
			t.Errorf("%v left, %v", g.remaining(), err)
		}
	})
}

// TestPauseOfAMinute proves that no response can stop a client for longer.
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
		if r := c.get(soon); !errors.Is(r.err(), ErrLocalLimit) || r.Failure.RetryAfter != time.Minute {
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

// TestOnlyThrottlingPauses proves that a Retry-After of another status concerns
// its own call alone.
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

func TestCancelDuringCooldown(t *testing.T) {
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

func retryAfter(value string) time.Duration {
	a := attempt{Result: Result{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {value}}}}
	return a.retryAfter()
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(d time.Duration, layout string) string { return time.Now().UTC().Add(d).Format(layout) }
		asctime := "Mon Jan _2 15:04:05 2006"
		for value, want := range map[string]time.Duration{
			"0": 0, "1": time.Second, "60": time.Minute, "007": 7 * time.Second, " 5": 5 * time.Second, "5 ": 5 * time.Second, "\t5": 5 * time.Second,
			"31536000": retryAfterCeiling, "31536001": retryAfterCeiling, "9223372037": retryAfterCeiling, "18446744074": retryAfterCeiling,
			"9223372036854775808": retryAfterCeiling, strings.Repeat("9", 400): retryAfterCeiling,

			in(90*time.Second, http.TimeFormat):                  90 * time.Second,
			in(90*time.Second, asctime):                          90 * time.Second,
			in(90*time.Second, "Monday, 02-Jan-06 15:04:05 GMT"): 90 * time.Second,
			in(-time.Hour, http.TimeFormat):                      0,
			in(0, http.TimeFormat):                               0,
			"Fri, 31 Dec 9999 23:59:59 GMT":                      retryAfterCeiling,

			"": 0, " ": 0, "soon": 0, "1.5": 0, "-1": 0, "+1": 0, "1s": 0, "1,2": 0, "0x10": 0, "1e3": 0, "١": 0, "1 2": 0,
			"Sat, 01 Jan 2000 00:01:30 EST": 0, "2000-01-01T00:01:30Z": 0,
		} {
			if got := retryAfter(value); got != want {
				t.Errorf("%q: %v, want %v", value, got, want)
			}
		}
	})
	if got := (&attempt{Result: Result{StatusCode: http.StatusTooManyRequests}}).retryAfter(); got != 0 {
		t.Errorf("without headers: %v", got)
	}
}

// FuzzRetryAfter proves that no value makes a wait that is negative, absurd, or
// not what the digits say.
func FuzzRetryAfter(f *testing.F) {
	for _, value := range []string{"1", "-1", "1e9", "99999999999999999999", "Sat, 01 Jan 2000 00:01:30 GMT", " 5 ", "Sun Nov  6 08:49:37 1994"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got := retryAfter(value)
		if got < 0 || got > retryAfterCeiling {
			t.Errorf("%q: %v", value, got)
		}
		seconds, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		if want := time.Duration(min(seconds, 365*24*3600)) * time.Second; err == nil && got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	})
}

// spread returns the least and the greatest of many draws.
func spread(draw func() time.Duration) (least, greatest time.Duration) {
	least = draw()
	for range 2000 {
		d := draw()
		least, greatest = min(least, d), max(greatest, d)
	}
	return least, greatest
}

// TestBackoff proves that waits are spread over the whole of a range that
// doubles up to its limit.
func TestBackoff(t *testing.T) {
	s := &Settings{WaitBase: 200 * time.Millisecond, WaitMax: 5 * time.Second}
	for _, test := range []struct {
		s       *Settings
		n       int
		limited bool
		bound   time.Duration
	}{
		{s, 0, false, 200 * time.Millisecond}, {s, 1, false, 400 * time.Millisecond}, {s, 3, false, 1600 * time.Millisecond},
		{s, 5, false, 5 * time.Second}, {s, 20, false, 5 * time.Second}, {s, 10_000, false, 5 * time.Second},
		{s, 0, true, time.Second}, {s, 1, true, 2 * time.Second}, {s, 4, true, 5 * time.Second},
		{&Settings{WaitBase: 10 * time.Millisecond, WaitMax: 100 * time.Millisecond}, 0, true, 100 * time.Millisecond},
		{&Settings{WaitBase: 2 * time.Second, WaitMax: 9 * time.Second}, 0, true, 2 * time.Second},
		{&Settings{WaitBase: 1 << 62, WaitMax: 1<<63 - 1}, 3, false, 1<<63 - 1},
	} {
		least, greatest := spread(func() time.Duration { return test.s.backoff(t.Context(), test.n, test.limited, 0) })
		// Of 2,000 draws the tenths at both ends are all but certain to be met.
		if least < 0 || greatest > test.bound || least > test.bound/10 || greatest < test.bound/10*9 {
			t.Errorf("retry %d, limited %t: %v to %v, want 0 to %v", test.n, test.limited, least, greatest, test.bound)
		}
	}
	for _, s := range []*Settings{{}, {WaitMax: time.Second}} {
		if _, greatest := spread(func() time.Duration { return s.backoff(t.Context(), 3, true, 0) }); greatest != 0 {
			t.Errorf("without a base: %v", greatest)
		}
	}
}

// TestBackoffHonorsRetryAfter proves that a wait is never shorter than what the service
// asked for, and not much longer.
func TestBackoffHonorsRetryAfter(t *testing.T) {
	for _, test := range []struct{ backoff, retryAfter, least, greatest time.Duration }{
		{300, 0, 0, 299},
		{0, 5 * time.Second, 5 * time.Second, 5500 * time.Millisecond},
		{0, time.Minute, time.Minute, 61 * time.Second},
		{10 * time.Second, 5 * time.Second, 5 * time.Second, 10*time.Second - 1},
	} {
		draw := func(random func(below time.Duration) time.Duration) time.Duration {
			s := &Settings{WaitBase: test.backoff, WaitMax: test.backoff}
			s.random = func(_ context.Context, below time.Duration) time.Duration { return random(below) }
			return s.backoff(t.Context(), 0, false, test.retryAfter)
		}
		least := draw(func(time.Duration) time.Duration { return 0 })
		greatest := draw(func(below time.Duration) time.Duration { return below - 1 })
		if least != test.least || greatest != test.greatest {
			t.Errorf("%+v: %v to %v", test, least, greatest)
		}
	}
}

// TestWaits proves when the requests of a call leave.
func TestWaits(t *testing.T) {
	for _, test := range []struct {
		name     string
		response func(*http.Request) (*http.Response, error)
		deadline time.Duration // 0: none
		requests int
		least    time.Duration // of each wait
		greatest []time.Duration
		reported time.Duration // the failure's RetryAfter
	}{
		{"503", status(503), 0, 4, 0, []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond}, 0},
		{"429", status(429), 0, 4, 0, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, 0},
		{"503 with a wait", status(503, "Retry-After", "10"), 0, 4, 10 * time.Second, []time.Duration{11 * time.Second, 11 * time.Second, 11 * time.Second}, 10 * time.Second},
		{"a minute", status(429, "Retry-After", "60"), 0, 4, time.Minute, []time.Duration{61 * time.Second, 61 * time.Second, 61 * time.Second}, time.Minute},
		{"more than a minute", status(429, "Retry-After", "61"), 0, 1, 0, nil, 61 * time.Second},
		{"with another choice", status(300, "Retry-After", "10"), 0, 1, 0, nil, 10 * time.Second},
		{"with a page", status(200, "Content-Type", "text/html", "Retry-After", "10"), 0, 1, 0, nil, 0},
		{"for ever", status(503, "Retry-After", strings.Repeat("9", 99)), 0, 1, 0, nil, retryAfterCeiling},
		{"beyond the deadline", status(429, "Retry-After", "30"), 30 * time.Second, 1, 0, nil, 30 * time.Second},
		{"the second beyond the deadline", status(429, "Retry-After", "30"), 40 * time.Second, 2, 30 * time.Second, []time.Duration{31 * time.Second}, 30 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if test.deadline > 0 {
					bounded, cancel := context.WithTimeout(ctx, test.deadline)
					defer cancel()
					ctx = bounded
				}
				network := serve(test.response)
				r := newClient(t, network).get(ctx)
				took := time.Since(network.began)
				if network.requests() != test.requests || r.Failure == nil || r.Failure.RetryAfter != test.reported {
					t.Fatalf("%d requests, failure %+v", network.requests(), r.Failure)
				}
				for i, greatest := range test.greatest {
					if wait := network.arrived[i+1] - network.arrived[i]; wait < test.least || wait > greatest {
						t.Errorf("wait %d was %v, want %v to %v", i+1, wait, test.least, greatest)
					}
				}
				if took != network.arrived[test.requests-1] {
					t.Errorf("the call ended after %v, its last response came after %v", took, network.arrived[test.requests-1])
				}
				// A wait that would not have been met leaves the response as the error.
				if ctx.Err() != nil {
					t.Error(ctx.Err())
				}
			})
		})
	}
}

// spend makes calls that fail until the client repeats no more, and returns how
// many repetitions there were.
func spend(t *testing.T, c *Client) (repetitions int) {
	t.Helper()
	for range 1000 {
		r := c.get(t.Context())
		if r.Attempts == 1 {
			return repetitions
		}
		repetitions += r.Attempts - 1
	}
	t.Fatal("the budget never ends")
	return 0
}

// TestBudget proves that an outage is not met with a multiple of the load, and
// what earns repetitions again: a success, a 202 and a 4xx.
func TestBudget(t *testing.T) {
	for _, status := range []int{200, 202, 404} {
		earns(t, status)
	}
}

func earns(t *testing.T, status int) {
	fails, first := true, true
	network := roundTripper(func(*http.Request) (*http.Response, error) {
		if fails || !first {
			first = true
			return reply(503, ""), nil
		}
		return reply(status, ""), nil
	})
	var log bytes.Buffer
	c := newClient(t, network, WithRetryWait(0, 0), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if n := spend(t, c); n != 100 {
		t.Errorf("%d repetitions, want 500 tokens at 5 each", n)
	}
	if !strings.Contains(log.String(), "level=WARN") {
		t.Error("the end of the budget is not logged")
	}
	// Who reads the error learns why there was one attempt, and no second.
	const spent = "the retry budget of the client is spent"
	r := c.get(t.Context())
	if text := Describe("test", r.Failure); !strings.Contains(text, spent) || r.Attempts != 1 {
		t.Error(text)
	}
	r = newClient(t, network, WithRetryWait(0, 0)).get(t.Context())
	if text := Describe("test", r.Failure); strings.Contains(text, spent) || r.Attempts != 4 {
		t.Error(text)
	}
	succeed := func(times int) {
		fails = false
		for range times {
			if r := c.get(t.Context()); r.StatusCode != status {
				t.Fatal(r.err())
			}
		}
		fails = true
	}
	succeed(4)
	if n := spend(t, c); n != 0 {
		t.Errorf("%d repetitions for 4 successes", n)
	}
	succeed(6)
	if n := spend(t, c); n != 2 {
		t.Errorf("%d repetitions for 10 successes", n)
	}
	succeed(5)
	// A repetition that succeeds costs nothing: it can go on for ever.
	fails = false
	for range 1000 {
		first = false
		if r := c.get(t.Context()); r.StatusCode != status || r.Attempts != 2 {
			t.Fatalf("%d attempts, %v", r.Attempts, r.err())
		}
	}
	succeed(1000)
	if n := spend(t, c); n != 100 {
		t.Errorf("%d repetitions after very many successes", n)
	}
}

// TestBudgetOfTimeouts proves that timeouts cost twice as much.
func TestBudgetOfTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if n := spend(t, newClient(t, roundTripper(stall))); n != 50 {
			t.Errorf("%d repetitions, want 500 tokens at 10 each", n)
		}
	})
}

// TestBudgetSparesRenewals proves that a token expires without harm in an outage.
func TestBudgetSparesRenewals(t *testing.T) {
	asked, old := 0, false
	network := roundTripper(func(r *http.Request) (*http.Response, error) {
		switch {
		case !old:
			return reply(503, ""), nil
		case r.Header.Get("Authorization") == "Bearer 1":
			return reply(401, ""), nil
		}
		return reply(200, ""), nil
	})
	renewing := TokenFunc(func(context.Context) (string, error) {
		if !old {
			return "1", nil
		}
		asked++
		return fmt.Sprint(asked), nil
	})
	c := newClient(t, network, WithRetryWait(0, 0), WithTokenSource(renewing))
	spend(t, c)
	old = true
	if r := c.get(t.Context()); r.Failure != nil || r.Attempts != 2 {
		t.Errorf("%d attempts, %v", r.Attempts, r.err())
	}
}

// TestAdaptiveRate proves that a client with an unknown limit comes to use it, and
// that what it found is logged.
func TestAdaptiveRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket, refused := rate.NewLimiter(20, 20), 0
		network := roundTripper(func(*http.Request) (*http.Response, error) {
			if !bucket.Allow() {
				refused++
				return reply(429, ""), nil
			}
			return reply(200, ""), nil
		})
		var log bytes.Buffer
		c := newClient(t, network, WithAdaptiveRate(0, 1000), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if got := c.Rate(); got != 1 {
			t.Errorf("begins at %v", got)
		}
		for range 3000 {
			if r := c.Do(t.Context(), write(), nil); r.Failure != nil {
				t.Fatal(r.err())
			}
		}
		if got := c.Rate(); got < 15 || got > 25 || refused == 0 || refused > 100 {
			t.Errorf("%v a second after %d refusals", got, refused)
		}
		for n, said := range []string{" rate=2\n", " rate=4\n", " rate=8\n", " rate=16\n"} {
			if event := strings.Split(log.String(), "\n")[n] + "\n"; !strings.Contains(event, "msg=rate") || !strings.HasSuffix(event, said) {
				t.Errorf("rate %d of the log: %s", n, event)
			}
		}
		// One for each refusal that changed it, and none for each second of an hour.
		if changes := strings.Count(log.String(), "msg=rate"); changes < 6 || changes > refused+10 {
			t.Errorf("%d changes of the rate are logged, after %d refusals", changes, refused)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		failing := newClient(t, serve(status(500)), WithAdaptiveRate(0, 1000), WithMaxRetries(0))
		for range 100 {
			failing.get(t.Context())
		}
		if got := failing.Rate(); got != 1 {
			t.Errorf("100 failures make it %v", got)
		}
	})
	if _, err := New(kind(), "https://service.test", []Option{WithAdaptiveRate(2, 2)}); err != nil {
		t.Error(err)
	}
	for name, opts := range map[string][]Option{
		"nothing": {WithAdaptiveRate(0, 0)}, "no maximum": {WithAdaptiveRate(1, 0)}, "start above it": {WithAdaptiveRate(2, 1)}, "negative": {WithAdaptiveRate(-1, 1)}, "no end": {WithAdaptiveRate(1, rate.Inf)},
		"a rate": {WithRateLimit(1, 1), WithAdaptiveRate(1, 2)}, "a limiter": {WithAdaptiveRate(1, 2), WithLimiter(rate.NewLimiter(1, 1))},
	} {
		if _, err := New(kind(), "https://service.test", opts); !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := newClient(t, serve(status(200)), WithAdaptiveRate(1, 2))
	check(t, c.get(t.Context(), WithAdaptiveRate(1, 2)).err(), ErrInvalidArgument)
	if r := c.get(t.Context(), WithLimiter(nil)); r.Failure != nil || newClient(t, nil).Rate() != 0 {
		t.Errorf("a limiter of the call's own: %v", r.err())
	}
}
