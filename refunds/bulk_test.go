package refunds_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
)

func TestSubmitAllYieldsAsRefundsSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{
			latency: func(id string) time.Duration {
				return map[string]time.Duration{"a": 3, "b": 2, "c": 1, "d": 4}[id] * time.Second
			},
			status: func(id string) int { return map[string]int{"a": 200, "b": 422, "c": 202, "d": 504}[id] },
		}
		var got []string
		for s, end := range s.warmClient(t).SubmitAll(t.Context(), named("a", "b", "c", "d"), refunds.BulkOptions{}) {
			got = append(got, summary(s, end))
			if s.RefundID == "c" && s.Receipt.StatusCode != 202 {
				t.Errorf("receipt %+v", s.Receipt)
			}
		}
		if want := []string{"2 c accepted", "1 b rejected", "0 a accepted", "3 d unknown"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// The records of one refund leave one after the other, in the order of the input, also if one is taken while
// another is in flight and one is over. They hold up no other refund, and none of another account.
func TestSubmitAllHoldsUpTheRecordsOfARefundAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: func(string) time.Duration { return time.Second }}
		items := func(yield func(refunds.Item) bool) {
			for _, next := range []struct {
				account string
				after   time.Duration
			}{{"a", 0}, {"b", 0}, {"a", 0}, {"c", 1200 * time.Millisecond}, {"b", 0}, {"a", 300 * time.Millisecond}} {
				time.Sleep(next.after)
				yield(refunds.Item{AccountID: next.account, Refund: &refunds.Refund{RefundID: "rf_1"}})
			}
		}
		last := map[string]int{}
		for one := range s.warmClient(t).SubmitAll(t.Context(), items, refunds.BulkOptions{}) {
			if one.Err != nil || one.Index < last[one.AccountID] {
				t.Errorf("%v after %d: %v", one, last[one.AccountID], one.Err)
			}
			last[one.AccountID] = one.Index
		}
		var got []string
		for _, a := range s.sent() {
			got = append(got, a.at.String()+strings.TrimSuffix(a.path, "/refunds"))
		}
		slices.Sort(got)
		if want := []string{"0s/v1/a", "0s/v1/b", "1.2s/v1/a", "1.2s/v1/b", "1.2s/v1/c", "2.2s/v1/a"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// A record is sent again after what passes by itself, and after nothing else. The attempts of all sendings count in
// the result, in its error and in the progress.
func TestSubmitAllSendsAgain(t *testing.T) {
	for _, test := range []struct {
		statuses []int
		opts     []refunds.Option
		outcome  refunds.Outcome
		attempts int
	}{
		{[]int{429, 429, 400}, nil, rejected, 3},
		{[]int{503, 200}, nil, unknown, 1},
		{[]int{503, 200}, []refunds.Option{refunds.WithResubmit()}, accepted, 2},
		{[]int{503, 200}, []refunds.Option{refunds.WithRefusals(503)}, accepted, 2},
		{[]int{500, 200}, []refunds.Option{refunds.WithRefusals(500)}, rejected, 1},
		{[]int{408, 200}, []refunds.Option{refunds.WithRefusals(408)}, rejected, 1},
		{[]int{421, 200}, []refunds.Option{refunds.WithRefusals(421)}, rejected, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			s := &service{status: func(string) int { n++; return test.statuses[n-1] }}
			var last refunds.BulkProgress
			o := refunds.BulkOptions{Progress: func(p refunds.BulkProgress) { last = p }}
			for one, end := range s.client(t, test.opts...).SubmitAll(t.Context(), numbered(1), o) {
				if end != nil || one.Outcome != test.outcome || one.Attempts != test.attempts {
					t.Errorf("%v: %v in %d attempts: %v, %v", test.statuses, one, one.Attempts, one.Err, end)
				}
				if one.Err != nil {
					if e := failed(t, nil, one.Err); e.Attempts != test.attempts {
						t.Errorf("%v: %d attempts", test.statuses, e.Attempts)
					}
				}
			}
			if last.Requests != test.attempts || last.Retries != test.attempts-1 {
				t.Errorf("%v: %+v", test.statuses, last)
			}
		})
	}
}

// Requests have the values of the context, and the options of the call. An item's own options
// win, and no item gets those of another, even if the caller's slice has room for more.
func TestSubmitAllTakesOptions(t *testing.T) {
	type key struct{}
	var mu sync.Mutex
	sent := map[string]int{}
	network := roundTripper(func(r *http.Request) (*http.Response, error) {
		id := refundID(r)
		mu.Lock()
		defer mu.Unlock()
		want := "own key of " + id
		if strings.HasPrefix(id, "plain") {
			want = "call "
		}
		if got := r.Header.Get("X-Run") + " " + r.Header.Get("Idempotency-Key"); got != want || r.Context().Value(key{}) != "trace" {
			t.Errorf("%s was sent with %q", id, got)
		}
		if sent[id]++; sent[id] == 1 && id == "own_7" {
			return testkit.Limited(r)
		}
		return testkit.Answer(200, "")(r)
	})
	items := func(yield func(refunds.Item) bool) {
		for i := range 100 {
			id := fmt.Sprint("own_", i)
			own := []refunds.CallOption{refunds.WithHeader("Idempotency-Key", "key of "+id), refunds.WithHeader("X-Run", "own")}
			if i%4 == 0 {
				id, own = fmt.Sprint("plain_", i), nil
			}
			yield(refunds.Item{AccountID: "acct", Refund: &refunds.Refund{RefundID: id}, Options: own})
		}
	}
	opts := append(make([]refunds.CallOption, 0, 8), refunds.WithHeader("X-Run", "call"))
	ctx := context.WithValue(t.Context(), key{}, "trace")
	for s, end := range clientOver(t, network, refunds.WithRetryWait(0, 0)).SubmitAll(ctx, items, refunds.BulkOptions{Concurrency: 10}, opts...) {
		if end != nil || s.Err != nil {
			t.Error(s, s.Err, end)
		}
	}
	if len(sent) != 100 || sent["own_7"] != 2 {
		t.Errorf("%v", sent)
	}
}

// The records that are taken but not yielded are bounded: by the concurrency, as long as
// results are ready, and by a thousand more behind a result that is not.
func TestSubmitAllTakesNoMoreThanItHasPlacesFor(t *testing.T) {
	for _, test := range []struct {
		items   iter.Seq[refunds.Item]
		o       refunds.BulkOptions
		ahead   int // of the results
		waiting string
	}{
		{numbered(500), refunds.BulkOptions{Concurrency: 1}, 1, ""},
		{numbered(500), refunds.BulkOptions{Concurrency: 4}, 4, ""},
		{named(slices.Repeat([]string{"rf_0"}, 5000)...), refunds.BulkOptions{Concurrency: 4}, 1028, "rf_0"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{latency: func(id string) time.Duration {
				if id == test.waiting {
					return 30 * time.Second
				}
				return time.Millisecond
			}}
			taken, done, most := 0, 0, 0
			input := func(yield func(refunds.Item) bool) {
				for item := range test.items {
					taken++
					if most = max(most, taken-done); !yield(item) {
						return
					}
				}
			}
			for range s.client(t).SubmitAll(t.Context(), input, test.o) {
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
		})
	}
}

// A record may wait for the limiter for longer than a call may take. Its request may not.
func TestSubmitAllIsPatientWithTheLimiterAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		counts, end := count(t, (&service{}).client(t, refunds.WithRateLimit(rate.Every(time.Minute), 1)), numbered(20), refunds.BulkOptions{})
		if took := time.Since(began); counts[accepted] != 20 || end != nil || took != 19*time.Minute {
			t.Errorf("%v after %v: %v", counts, took, end)
		}
		s := &service{latency: func(string) time.Duration { return time.Hour }}
		for one := range s.client(t, refunds.WithAttemptTimeout(0)).SubmitAll(t.Context(), numbered(1), refunds.BulkOptions{}) {
			if took := time.Since(s.began); !errors.Is(one.Err, refunds.ErrTimeout) || one.Outcome != unknown || took != 90*time.Second {
				t.Errorf("%v after %v: %v", one, took, one.Err)
			}
		}
	})
}

func TestSubmitAllRefusesUnusableUse(t *testing.T) {
	s := &service{}
	client := s.client(t)
	var none context.Context
	ranged := client.SubmitAll(t.Context(), numbered(1), refunds.BulkOptions{})
	for range ranged {
	}
	for name, results := range map[string]iter.Seq2[refunds.Submission, error]{
		"nil client":       (*refunds.Client)(nil).SubmitAll(t.Context(), numbered(1), refunds.BulkOptions{}),
		"zero client":      new(refunds.Client).SubmitAll(t.Context(), numbered(1), refunds.BulkOptions{}),
		"no context":       client.SubmitAll(none, numbered(1), refunds.BulkOptions{}),
		"no input":         client.SubmitAll(t.Context(), nil, refunds.BulkOptions{}),
		"no refunds":       client.SubmitAll(t.Context(), refunds.Items("acct", nil), refunds.BulkOptions{}),
		"bad option":       client.SubmitAll(t.Context(), numbered(1), refunds.BulkOptions{}, refunds.WithMaxRetries(-1)),
		"bad concurrency":  client.SubmitAll(t.Context(), numbered(1), refunds.BulkOptions{Concurrency: -1}),
		"ranged over once": ranged,
	} {
		n := 0
		for s, err := range results {
			n++
			if s != (refunds.Submission{}) || !errors.Is(err, refunds.ErrInvalidArgument) || outcomesOf(err) > 0 {
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
