package main

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// TestJudge: the state that an attempt leads to, by what the service did.
func TestJudge(t *testing.T) {
	for _, test := range []struct {
		name          string
		fault         refundstest.Fault
		refusals      int
		state, reason string
		failed        bool
	}{
		{"accepted", refundstest.Fault{Status: 202}, 0, accepted, "", false},
		{"bad request", refundstest.Fault{Status: 400}, 0, rejected, "400 scripted", false},
		{"conflict", refundstest.Fault{Status: 409}, 0, rejected, "409 scripted", false},
		{"too large", refundstest.Fault{Status: 413}, 0, rejected, "413 scripted", false},
		{"unprocessable", refundstest.Fault{Status: 422, Body: `{"message":"canary"}`}, 0, rejected, "422 Unprocessable Entity", false},
		{"code like a card", refundstest.Fault{Status: 422, Body: `{"error":{"code":"4111111111111111"}}`}, 0, rejected, "422 Unprocessable Entity", false},
		{"credential", refundstest.Fault{Status: 401}, 0, pending, "401 scripted", true},
		{"credential, many times", refundstest.Fault{Status: 401}, stubborn, rejected, "401 scripted", true},
		{"forbidden", refundstest.Fault{Status: 403}, 0, pending, "403 scripted", true},
		{"not found", refundstest.Fault{Status: 404}, 0, pending, "404 scripted", true},
		{"redirect", refundstest.Fault{Status: 307}, 0, pending, "307 scripted", true},
		{"not implemented", refundstest.Fault{Status: 501}, 0, pending, "501 scripted", true},
		{"rate limited", refundstest.Fault{Status: 429, RetryAfter: 3 * time.Second}, 0, pending, "429 scripted", true},
		{"rate limited, many times", refundstest.Fault{Status: 429, RetryAfter: 3 * time.Second}, 2 * stubborn, pending, "429 scripted", true},
		{"refused", refundstest.Fault{Refuse: true}, 2 * stubborn, pending, "no answer", true},
		{"unavailable", refundstest.Fault{Status: 503}, 0, unknown, "503 scripted", true},
		{"timeout status", refundstest.Fault{Status: 408}, 0, unknown, "408 scripted", true},
		{"dropped before", refundstest.Fault{DropBefore: true}, 0, unknown, "no answer", true},
		{"dropped after", refundstest.Fault{DropAfter: true}, 0, unknown, "no answer", true},
		{"timeout", refundstest.Fault{HeaderDelay: time.Hour}, 0, unknown, "timeout", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			fake := refundstest.NewServer(t)
			fake.Script(test.fault)
			receipt, err := fake.Client().Submit(t.Context(), "acct", &refunds.Refund{RefundID: "rf_1"}, refunds.WithMaxRetries(0))
			got := judge(receipt, err, test.refusals)
			if got.state != test.state || got.reason != test.reason || got.failed != test.failed || got.wait != test.fault.RetryAfter {
				t.Errorf("%s: %+v, want %s %q", test.name, got, test.state, test.reason)
			}
		})
	}
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

// TestStorable: whatever the service writes can be written down.
func TestStorable(t *testing.T) {
	dirty := "id\xff\x00\n" + strings.Repeat("é", 2000)
	for _, o := range []outcome{
		judge(&refunds.Receipt{StatusCode: 200, RequestID: dirty}, nil, 0),
		judge(nil, &refunds.OutcomeError{Err: &refunds.Error{StatusCode: 422, RequestID: dirty, Message: dirty}}, 0),
	} {
		for _, text := range []string{o.requestID, o.message} {
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\n") || utf8.RuneCountInString(text) > 1000 {
				t.Errorf("%.20q", text)
			}
		}
		if o.requestID == "" {
			t.Error("the request id is lost")
		}
	}
}

// TestJudgeRefusedHere: what the library refuses is no failure of the service, and
// not tried again.
func TestJudgeRefusedHere(t *testing.T) {
	_, err := refundstest.NewServer(t).Client().Submit(t.Context(), "..", &refunds.Refund{RefundID: "a"})
	if o := judge(nil, err, 0); o.state != rejected || o.failed || o.reason != "invalid argument" {
		t.Errorf("%+v", o)
	}
}

// TestRefusals: those that count are in a row, and a decision begins anew.
func TestRefusals(t *testing.T) {
	s := newSystem(t)
	s.enqueue(one)
	next := func(o outcome) int {
		t.Helper()
		c, err := take(t.Context(), s.db, 1, "w")
		if err != nil || c == nil {
			t.Fatal(c, err)
		}
		if done, err := settle(t.Context(), s.db, 1, c.attempt, sending, o); !done || err != nil {
			t.Fatal(done, err)
		}
		return c.refusals
	}
	refused := outcome{state: pending, refused: true}
	got := []int{next(refused), next(refused), next(outcome{state: pending}), next(refused), next(outcome{state: rejected})}
	if err := s.db.transact(t.Context(), func(tx transaction) error {
		_, err := decide(t.Context(), tx, 1, 5, rejected, decision{what: decidedResubmit}, 0)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got = append(got, next(refused)); !slices.Equal(got, []int{0, 1, 2, 0, 1, 0}) {
		t.Error(got)
	}
}
