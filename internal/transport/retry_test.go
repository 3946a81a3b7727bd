package transport

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/await"
	"github.com/carddata/carddata-go/internal/fault"
)

// spread returns the least and the greatest of many draws.
func spread(draw func() time.Duration) (least, greatest time.Duration) {
	least = draw()
	for range 300 {
		d := draw()
		least, greatest = min(least, d), max(greatest, d)
	}
	return least, greatest
}

// Waits are spread over a whole range, which doubles up to its limit, and leaves a call with a deadline time for
// several attempts.
func TestBackoff(t *testing.T) {
	s := &Settings{WaitBase: 200 * time.Millisecond, WaitMax: 5 * time.Second}
	for _, test := range []struct {
		s       *Settings
		n       int
		limited bool
		left    time.Duration // until the deadline; 0: there is none
		bound   time.Duration
	}{
		{s, 0, false, 0, 200 * time.Millisecond}, {s, 1, false, 0, 400 * time.Millisecond}, {s, 3, false, 0, 1600 * time.Millisecond},
		{s, 5, false, 0, 5 * time.Second}, {s, 20, false, 0, 5 * time.Second}, {s, 10_000, false, 0, 5 * time.Second},
		{s, 0, true, 0, time.Second}, {s, 1, true, 0, 2 * time.Second}, {s, 4, true, 0, 5 * time.Second},
		{s, 5, false, 4 * time.Second, time.Second}, {s, 5, true, 4 * time.Second, 5 * time.Second},
		{&Settings{WaitBase: 10 * time.Millisecond, WaitMax: 100 * time.Millisecond}, 0, true, 0, 100 * time.Millisecond},
		{&Settings{WaitBase: 2 * time.Second, WaitMax: 9 * time.Second}, 0, true, 0, 2 * time.Second},
		{&Settings{WaitBase: 1 << 62, WaitMax: 1<<63 - 1}, 3, false, 0, 1<<63 - 1},
	} {
		test.s.random = await.Evenly
		ctx := t.Context()
		if test.left > 0 {
			bounded, cancel := context.WithTimeout(ctx, test.left)
			defer cancel()
			ctx = bounded
		}
		least, greatest := spread(func() time.Duration { return test.s.backoff(ctx, test.n, test.limited, 0) })
		// 300 draws miss a tenth at one end once in 10^13 times.
		if least < 0 || greatest > test.bound || least > test.bound/10 || greatest < test.bound/10*9 {
			t.Errorf("retry %d, limited %t, %v left: %v to %v, want 0 to %v", test.n, test.limited, test.left, least, greatest, test.bound)
		}
	}
	for _, s := range []*Settings{{}, {WaitMax: time.Second}} {
		s.random = await.Evenly
		if _, greatest := spread(func() time.Duration { return s.backoff(t.Context(), 3, true, 0) }); greatest != 0 {
			t.Errorf("without a base: %v", greatest)
		}
	}
}

// The waits between the requests of a call, and the Retry-After that its failure reports.
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
		{"with a page", says(200, "<html>", "Retry-After", "10"), 0, 1, 0, nil, 0},
		{"for ever", status(503, "Retry-After", strings.Repeat("9", 99)), 0, 1, 0, nil, 365 * 24 * time.Hour},
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
				// If the deadline would cut a wait short, the call ends with the response.
				if ctx.Err() != nil {
					t.Error(ctx.Err())
				}
			})
		})
	}
}

// spend makes failing calls until the client no longer retries, and returns the number of
// retries.
func spend(t *testing.T, c *Client) (retries int) {
	t.Helper()
	for range 1000 {
		r := c.get(t.Context())
		if r.Attempts == 1 {
			return retries
		}
		retries += r.Attempts - 1
	}
	t.Fatal("the budget never ends")
	return 0
}

// The retries of a client in an outage are limited. Successes earn further retries, and so do
// a 202 and a 4xx, because the service answered.
func TestBudget(t *testing.T) {
	network := serve(status(503))
	var log bytes.Buffer
	c := newClient(t, network, WithRetryWait(0, 0), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if n := spend(t, c); n != 100 {
		t.Errorf("%d retries, want 500 tokens at 5 each", n)
	}
	if !strings.Contains(log.String(), "level=WARN") {
		t.Error("the end of the budget is not logged")
	}
	// The error says why there was no second attempt, and keeps its condition.
	const spent = "the retry budget of the client is spent"
	r := c.get(t.Context())
	if text := fault.Describe("test", r.Failure); !strings.Contains(text, spent) || r.Attempts != 1 {
		t.Error(text)
	}
	check(t, r.err(), fault.ErrServer)
	r = newClient(t, network, WithRetryWait(0, 0)).get(t.Context())
	if text := fault.Describe("test", r.Failure); strings.Contains(text, spent) || r.Attempts != 4 {
		t.Error(text)
	}
	answer := func(code, times int) {
		network.respond(status(code))
		for range times {
			call := read()
			call.Stream = code == 202
			if r := c.Do(t.Context(), call, nil); r.StatusCode != code {
				t.Fatal(r.err())
			}
		}
		network.respond(status(503))
	}
	for _, code := range []int{200, 202, 404} {
		if answer(code, 4); spend(t, c) != 0 {
			t.Errorf("4 times %d earned a retry", code)
		}
		if answer(code, 6); spend(t, c) != 2 {
			t.Errorf("10 times %d did not earn 2 retries", code)
		}
	}
	answer(200, 5)
	for range 200 { // a retry that succeeds costs nothing
		network.respond(status(503), status(200))
		if r := c.get(t.Context()); r.Failure != nil || r.Attempts != 2 {
			t.Fatalf("%d attempts, %v", r.Attempts, r.err())
		}
	}
	answer(200, budgetFull+100)
	if n := spend(t, c); n != 100 {
		t.Errorf("%d retries from a full budget", n)
	}
}

// A call without time for a retry does not spend the budget.
func TestRetryThatIsNotMadeCostsNothing(t *testing.T) {
	network := serve(status(429))
	c := newClient(t, network, WithRetryWait(0, 0))
	for range budgetFull / costRetry {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		attempts(t, c.get(ctx, WithRetryWait(1e6*time.Hour, 1e6*time.Hour)), 1) // no jitter makes that a second
		cancel()
	}
	network.respond(status(503))
	if n := spend(t, c); n != budgetFull/costRetry {
		t.Errorf("%d retries are left of %d", n, budgetFull/costRetry)
	}
}

// Concurrent calls share the budget, and no token gets lost. The race detector always notices
// a missing lock, and the sum often.
func TestBudgetIsShared(t *testing.T) {
	b := budget{tokens: 100}
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for range 200_000 {
				b.give(1)
				b.take(1)
			}
		})
	}
	if calls.Wait(); b.tokens != 100 {
		t.Errorf("%d tokens of 100", b.tokens)
	}
}

// A call with an expired token gets a new one even if the budget is spent.
func TestBudgetSparesRenewals(t *testing.T) {
	network := serve(status(503))
	renewing := &refusable{func() (string, error) { return "1", nil }, nil}
	renewing.refused = func(string) { renewing.token = func() (string, error) { return "2", nil } } // one at a time
	c := newClient(t, network, WithRetryWait(0, 0), WithTokenSource(renewing))
	spend(t, c)
	network.respond(status(401), status(200))
	if r := c.get(t.Context()); r.Failure != nil || r.Attempts != 2 {
		t.Errorf("%d attempts, %v", r.Attempts, r.err())
	}
}
