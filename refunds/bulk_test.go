package refunds_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/internal/testkit"
	"github.com/carddata/carddata-go/refunds"
)

func TestSubmitAllYieldsAsRefundsSettle(t *testing.T) {
	for _, test := range []struct {
		ordered bool
		want    []string
	}{
		{false, []string{"2 c accepted", "1 b rejected", "0 a accepted", "3 d unknown"}},
		{true, []string{"0 a accepted", "1 b rejected", "2 c accepted", "3 d unknown"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{
				latency: func(id string) time.Duration {
					return map[string]time.Duration{"a": 3, "b": 2, "c": 1, "d": 4}[id] * time.Second
				},
				status: func(id string) int { return map[string]int{"a": 200, "b": 422, "c": 202, "d": 504}[id] },
			}
			var got []string
			for s, err := range s.client(t).SubmitAll(t.Context(), refunds.Items("acct", named("a", "b", "c", "d")), refunds.BulkOptions{Ordered: test.ordered}) {
				got = append(got, summary(s, err))
				if s.RefundID == "c" && s.Receipt.StatusCode != 202 {
					t.Errorf("receipt %+v", s.Receipt)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("ordered %v: %q", test.ordered, got)
			}
		})
	}
}

// The later record of a refund is sent when the earlier one has settled, whatever
// became of it, and holds up no other refund.
func TestSubmitAllKeepsTheRecordsOfARefundApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{
			latency: func(string) time.Duration { return time.Second },
			status:  func(id string) int { return map[string]int{"a": 503, "b": 200, "c": 200}[id] },
		}
		for range s.client(t).SubmitAll(t.Context(), refunds.Items("acct", named("a", "a", "b", "a", "c")), refunds.BulkOptions{Concurrency: 3}) {
		}
		want := []arrival{{"a", 0}, {"b", 0}, {"c", 0}, {"a", time.Second}, {"a", 2 * time.Second}}
		slices.SortStableFunc(s.arrived, func(x, y arrival) int {
			return int(x.at-y.at) + strings.Compare(x.id, y.id)
		})
		if !slices.Equal(s.arrived, want) {
			t.Errorf("arrived %v", s.arrived)
		}
	})
}

func TestSubmitAllGoesOnAfterUnusableRecords(t *testing.T) {
	s := &service{}
	bad := &refunds.Refund{RefundID: "rf_bad", AdditionalData: refunds.AdditionalData{Metadata: map[string]any{"f": func() {}}}}
	in := []*refunds.Refund{nil, bad, bad, {}, nil, bad, {RefundID: "rf_good"}}
	unusable := 0
	for s, err := range s.client(t).SubmitAll(t.Context(), refunds.Items("acct", slices.Values(in)), refunds.BulkOptions{}) {
		if errors.Is(err, refunds.ErrInvalidArgument) && errors.Is(err, refunds.ErrNotSent) {
			unusable++
			if r := in[s.Index]; r != nil && s.RefundID != r.RefundID {
				t.Errorf("%v is of %q", s, s.RefundID)
			}
		} else if err != nil || s.RefundID != "rf_good" {
			t.Errorf("%v, %v", s, err)
		}
	}
	if unusable != 6 || len(s.ids()) != 1 {
		t.Errorf("%d unusable, sent %v", unusable, s.ids())
	}
}

// What is taken and not yielded is bounded: by the concurrency, as long as results
// are ready to be taken, and by the window behind one that is not.
func TestSubmitAllTakesNoMoreThanItHasPlacesFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			ids     iter.Seq[*refunds.Refund]
			o       refunds.BulkOptions
			ahead   int // of the results
			waiting string
		}{
			{numbered(500), refunds.BulkOptions{Concurrency: 1}, 1, ""},
			{numbered(500), refunds.BulkOptions{Concurrency: 4}, 7, ""},
			{numbered(500), refunds.BulkOptions{Concurrency: 4, Ordered: true}, 7, ""},
			{numbered(5000), refunds.BulkOptions{Concurrency: 4, Ordered: true}, 1028, "rf_0"},
			{named(slices.Repeat([]string{"rf_0"}, 5000)...), refunds.BulkOptions{Concurrency: 4}, 1028, "rf_0"},
		} {
			s := &service{latency: func(id string) time.Duration {
				if id == test.waiting {
					return 30 * time.Second
				}
				return time.Millisecond
			}}
			taken, done, most := 0, 0, 0
			for range s.client(t).SubmitAll(t.Context(), refunds.Items("acct", func(yield func(*refunds.Refund) bool) {
				for r := range test.ids {
					taken++
					if most = max(most, taken-done); !yield(r) {
						return
					}
				}
			}), test.o) {
				if done++; done%10 == 0 {
					time.Sleep(time.Second) // a slow consumer
				}
				if test.waiting != "" && done > 10 {
					break
				}
			}
			if most != test.ahead {
				t.Errorf("%+v: %d records ahead of the results, want %d", test.o, most, test.ahead)
			}
		}
	})
}

// A record may queue for the limiter beyond the time that a call may take, which
// then bounds its request.
func TestSubmitAllIsPatientWithTheLimiterAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		for s, err := range s.client(t, refunds.WithRateLimit(rate.Every(time.Minute), 1)).SubmitAll(t.Context(), refunds.Items("acct", numbered(20)), refunds.BulkOptions{}) {
			if err != nil {
				t.Errorf("%v: %v", s, err)
			}
		}
		if took := time.Since(s.began); took != 19*time.Minute {
			t.Errorf("took %v", took)
		}
		s = &service{latency: func(string) time.Duration { return time.Hour }}
		for s, err := range s.client(t, refunds.WithAttemptTimeout(0)).SubmitAll(t.Context(), refunds.Items("acct", numbered(1)), refunds.BulkOptions{}) {
			if !errors.Is(err, refunds.ErrTimeout) || s.Outcome != refunds.OutcomeUnknown {
				t.Errorf("%v: %v", s, err)
			}
		}
		if took := time.Since(s.began); took != 90*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestSubmitAllTellsTheAdaptiveRate(t *testing.T) {
	for want, opts := range map[rate.Limit][]refunds.Option{
		0: nil, 50: {refunds.WithAdaptiveRate(refunds.AdaptiveRate{Start: 50, Max: 50})},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{}
			o := refunds.BulkOptions{Progress: func(p refunds.BulkProgress) {
				if p.Rate != want {
					t.Errorf("%+v, want a rate of %v", p, want)
				}
			}}
			for s, err := range s.client(t, opts...).SubmitAll(t.Context(), refunds.Items("acct", numbered(3)), o) {
				if err != nil {
					t.Errorf("%v: %v", s, err)
				}
			}
		})
	}
}

func TestSubmitAllResubmitsOnTheCallersWord(t *testing.T) {
	for _, test := range []struct {
		opts     []refunds.Option
		outcome  refunds.Outcome
		attempts int
	}{
		{nil, refunds.OutcomeUnknown, 1},
		{[]refunds.Option{refunds.WithResubmit()}, refunds.OutcomeAccepted, 2},
	} {
		mock := newMock(testkit.Answer(503, ""), testkit.Answer(200, ""))
		var last refunds.BulkProgress
		o := refunds.BulkOptions{Progress: func(p refunds.BulkProgress) { last = p }}
		for s, err := range newClient(t, mock, test.opts...).SubmitAll(t.Context(), refunds.Items("acct-1", numbered(1)), o) {
			if s.Outcome != test.outcome || s.Attempts != test.attempts {
				t.Errorf("%v in %d attempts, %v", s, s.Attempts, err)
			}
		}
		if last.Requests != test.attempts || last.Retries != test.attempts-1 {
			t.Errorf("%+v", last)
		}
	}
}

func TestSubmitAllRefusesUnusableUse(t *testing.T) {
	s := &service{}
	client := s.client(t)
	var none context.Context
	ranged := client.SubmitAll(t.Context(), refunds.Items("acct", numbered(1)), refunds.BulkOptions{})
	for range ranged {
	}
	for name, results := range map[string]iter.Seq2[refunds.Submission, error]{
		"nil client":       (*refunds.Client)(nil).SubmitAll(t.Context(), refunds.Items("acct", numbered(1)), refunds.BulkOptions{}),
		"zero client":      new(refunds.Client).SubmitAll(t.Context(), refunds.Items("acct", numbered(1)), refunds.BulkOptions{}),
		"no context":       client.SubmitAll(none, refunds.Items("acct", numbered(1)), refunds.BulkOptions{}),
		"no input":         client.SubmitAll(t.Context(), nil, refunds.BulkOptions{}),
		"no refunds":       client.SubmitAll(t.Context(), refunds.Items("acct", nil), refunds.BulkOptions{}),
		"bad option":       client.SubmitAll(t.Context(), refunds.Items("acct", numbered(1)), refunds.BulkOptions{}, refunds.WithMaxRetries(-1)),
		"client's option":  client.SubmitAll(t.Context(), refunds.Items("acct", numbered(1)), refunds.BulkOptions{}, refunds.WithRateLimit(1, 1)),
		"bad concurrency":  client.SubmitAll(t.Context(), refunds.Items("acct", numbered(1)), refunds.BulkOptions{Concurrency: -1}),
		"ranged over once": ranged,
	} {
		n := 0
		for s, err := range results {
			n++
			if s != (refunds.Submission{Index: -1}) || !errors.Is(err, refunds.ErrInvalidArgument) || len(outcomesOf(err)) > 0 {
				t.Errorf("%s: %v, %v", name, s, err)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d results", name, n)
		}
	}
	if len(s.ids()) != 1 {
		t.Errorf("sent %v", s.ids())
	}
}

func TestSubmissionPrintsNoID(t *testing.T) {
	s := refunds.Submission{Index: 0, RefundID: "rf-canary", Outcome: refunds.OutcomeAccepted, Receipt: &refunds.Receipt{Body: []byte("body-canary")}}
	for form, text := range testkit.Printed(s) {
		if !strings.Contains(form, "in a") { // JSON of a list is the data itself
			testkit.NoSecret(t, form, text, "rf-canary", "body-canary")
		}
	}
	if got := fmt.Sprintf("%+v", s); got != "submission 0: accepted" {
		t.Error(got)
	}
	if got := s.LogValue().String() + (refunds.Submission{Index: -1}).LogValue().String(); got != "[index=0 outcome=accepted attempts=0][index=-1]" {
		t.Error(got)
	}
}
