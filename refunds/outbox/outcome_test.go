package outbox

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// TestJudge: what an attempt leads to, by what the service did.
func TestJudge(t *testing.T) {
	for _, test := range []struct {
		name   string // and the account's; ".." is refused by the library
		fault  refundstest.Fault
		event  event
		reason string
	}{
		{"accepted", refundstest.Fault{Status: 202}, eventAccepted, ""},
		{"..", refundstest.Fault{}, eventRefused, "invalid argument"},
		{"bad request", refundstest.Fault{Status: 400}, eventRefused, "400 scripted"},
		{"conflict", refundstest.Fault{Status: 409}, eventDoubted, "409 scripted"},
		{"too large", refundstest.Fault{Status: 413}, eventRefused, "413 scripted"},
		{"unprocessable", refundstest.Fault{Status: 422, Body: new(`{"message":"canary"}`)}, eventRefused, "422 Unprocessable Entity"},
		{"code like a card", refundstest.Fault{Status: 422, Body: new(`{"error":{"code":"4111111111111111"}}`)}, eventRefused, "422 Unprocessable Entity"},
		{"credential", refundstest.Fault{Status: 401}, eventUnsent, "401 scripted"},
		{"forbidden", refundstest.Fault{Status: 403}, eventUnsent, "403 scripted"},
		{"not found", refundstest.Fault{Status: 404}, eventUnsent, "404 scripted"},
		{"redirect", refundstest.Fault{Status: 307}, eventUnsent, "307 scripted"},
		{"not implemented", refundstest.Fault{Status: 501}, eventUnsent, "501 scripted"},
		{"rate limited", refundstest.Fault{Status: 429, RetryAfter: 3 * time.Second}, eventUnsent, "429 scripted"},
		{"rate limited, without a signature", refundstest.Fault{Status: 429, RetryAfter: -1}, eventDoubted, "429 scripted"},
		{"not acceptable", refundstest.Fault{Status: 406}, eventDoubted, "406 scripted"},
		{"refused", refundstest.Fault{Refuse: true}, eventUnsent, "no response"},
		{"unavailable", refundstest.Fault{Status: 503}, eventDoubted, "503 scripted"},
		{"timeout status", refundstest.Fault{Status: 408}, eventDoubted, "408 scripted"},
		{"dropped before", refundstest.Fault{Drop: true}, eventDoubted, "no response"},
		{"dropped after", refundstest.Fault{Drop: true, Process: true}, eventDoubted, "no response"},
		{"timeout", refundstest.Fault{Delay: time.Hour}, eventDoubted, "timeout"},
	} {
		synctest.Test(t, func(t *testing.T) {
			fake := refundstest.NewServer(t)
			fake.Script(test.fault)
			got := judge(fake.Client().Submit(t.Context(), test.name, &refunds.Refund{RefundID: "rf_1"}, refunds.WithMaxRetries(0)))
			if got.event != test.event || got.reason != test.reason || got.wait != max(0, test.fault.RetryAfter) || got.final != (test.fault.Status == 409) {
				t.Errorf("%s: %+v, want %s %q", test.name, got, test.event, test.reason)
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
