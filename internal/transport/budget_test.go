package transport

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

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
// what earns repetitions again.
func TestBudget(t *testing.T) {
	fails, first := true, true
	network := roundTripper(func(*http.Request) (*http.Response, error) {
		if fails || !first {
			first = true
			return reply(503, ""), nil
		}
		return reply(200, ""), nil
	})
	var log bytes.Buffer
	c := newClient(t, network, WithRetryWait(0, 0), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if n := spend(t, c); n != 100 {
		t.Errorf("%d repetitions, want 500 tokens at 5 each", n)
	}
	if !strings.Contains(log.String(), "level=WARN") {
		t.Error("the end of the budget is not logged")
	}
	succeed := func(times int) {
		fails = false
		for range times {
			if r := c.get(t.Context()); r.Failure != nil {
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
		if r := c.get(t.Context()); r.Failure != nil || r.Attempts != 2 {
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

// TestBudgetIsAClients proves that one service's outage costs no other's.
func TestBudgetIsAClients(t *testing.T) {
	one, other := newClient(t, serve(status(503)), WithRetryWait(0, 0)), newClient(t, serve(status(503)), WithRetryWait(0, 0))
	spend(t, one)
	attempts(t, other.get(t.Context()), 4)
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
