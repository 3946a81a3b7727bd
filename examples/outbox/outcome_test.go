package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// TestJudge: the state that an attempt leads to, by what the service did.
func TestJudge(t *testing.T) {
	for _, test := range []struct {
		name          string
		fault         refundstest.Fault
		attempt       int
		state, reason string
		failed        bool
	}{
		{"accepted", refundstest.Fault{Status: 202}, 1, accepted, "", false},
		{"bad request", refundstest.Fault{Status: 400}, 1, rejected, "400 scripted", false},
		{"conflict", refundstest.Fault{Status: 409}, 1, rejected, "409 scripted", false},
		{"too large", refundstest.Fault{Status: 413}, 1, rejected, "413 scripted", false},
		{"unprocessable", refundstest.Fault{Status: 422, Body: `{"message":"canary"}`}, 1, rejected, "422 Unprocessable Entity", false},
		{"code like a card", refundstest.Fault{Status: 422, Body: `{"error":{"code":"4111111111111111"}}`}, 1, rejected, "422 Unprocessable Entity", false},
		{"credential", refundstest.Fault{Status: 401}, 1, pending, "401 scripted", true},
		{"credential, many times", refundstest.Fault{Status: 401}, stubborn, rejected, "401 scripted", true},
		{"forbidden", refundstest.Fault{Status: 403}, 1, pending, "403 scripted", true},
		{"not found", refundstest.Fault{Status: 404}, 1, pending, "404 scripted", true},
		{"redirect", refundstest.Fault{Status: 307}, 1, pending, "307 scripted", true},
		{"not implemented", refundstest.Fault{Status: 501}, 1, pending, "501 scripted", true},
		{"rate limited", refundstest.Fault{Status: 429, RetryAfter: 3 * time.Second}, 1, pending, "429 scripted", true},
		{"rate limited, many times", refundstest.Fault{Status: 429, RetryAfter: 3 * time.Second}, 2 * stubborn, pending, "429 scripted", true},
		{"refused", refundstest.Fault{Refuse: true}, 2 * stubborn, pending, "no answer", true},
		{"unavailable", refundstest.Fault{Status: 503}, 1, unknown, "503 scripted", true},
		{"timeout status", refundstest.Fault{Status: 408}, 1, unknown, "408 scripted", true},
		{"dropped before", refundstest.Fault{DropBefore: true}, 1, unknown, "no answer", true},
		{"dropped after", refundstest.Fault{DropAfter: true}, 1, unknown, "no answer", true},
		{"timeout", refundstest.Fault{HeaderDelay: time.Hour}, 1, unknown, "timeout", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			fake := refundstest.NewServer(t)
			fake.Script(test.fault)
			receipt, err := fake.Client().Submit(t.Context(), "acct", &refunds.Refund{RefundID: "rf_1"}, refunds.WithMaxRetries(0))
			got := judge(receipt, err, test.attempt)
			if got.state != test.state || got.reason != test.reason || got.failed != test.failed || got.wait != test.fault.RetryAfter {
				t.Errorf("%s: %+v, want %s %q", test.name, got, test.state, test.reason)
			}
		})
	}
}

// TestBreaker: during an outage of an hour, few refunds are let through, and once
// one succeeds, all are.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b breaker
		began, through := time.Now(), 0
		for time.Since(began) < time.Hour {
			if err := b.wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			through++
			b.report(outcome{state: unknown, failed: true}, time.Now())
		}
		if through < 60 || through > 75 {
			t.Errorf("%d refunds were let through", through)
		}
		time.Sleep(pauseMost)
		b.report(outcome{state: accepted}, time.Now())
		at := time.Now()
		for range 100 {
			b.wait(t.Context())
		}
		if waited := time.Since(at); waited != 0 {
			t.Errorf("waited for %v after a success", waited)
		}
	})
}

// TestBreakerProbes: after a pause one goes through, and the others wait for what
// becomes of it.
func TestBreakerProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b breaker
		for range breakAfter {
			b.report(outcome{failed: true}, time.Now())
		}
		ctx, cancel := context.WithTimeout(t.Context(), pauseFirst+pauseFirst/2)
		defer cancel()
		through := make(chan error)
		for range 10 {
			go func() { through <- b.wait(ctx) }()
		}
		passed := 0
		for range 10 {
			if <-through == nil {
				passed++
			}
		}
		if passed != 1 {
			t.Errorf("%d passed", passed)
		}
	})
}

// TestBreakerObeys: the service's word on when to come again holds for all.
func TestBreakerObeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b breaker
		b.report(outcome{failed: true, wait: 7 * time.Second}, time.Now())
		began := time.Now()
		b.wait(t.Context())
		if waited := time.Since(began); waited != 7*time.Second {
			t.Errorf("waited for %v", waited)
		}
	})
}

func TestBackoff(t *testing.T) {
	for attempt, most := range map[int]time.Duration{1: time.Second, 3: 4 * time.Second, 20: 5 * time.Minute, 5000: 5 * time.Minute} {
		for range 100 {
			if d := backoff(attempt); d < most/2 || d > most {
				t.Fatalf("attempt %d: %v", attempt, d)
			}
		}
	}
}
