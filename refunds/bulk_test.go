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
	"github.com/carddata/carddata-go/refunds/refundstest"
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
			for s, end := range s.warmClient(t).SubmitAll(t.Context(), refunds.Items("acct", named("a", "b", "c", "d")), refunds.BulkOptions{Ordered: test.ordered}) {
				got = append(got, summary(s, end))
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

// The records of one refund leave one after the other, in the order of the input and after any
// outcome. They hold up no other refund, and none of another account.
func TestSubmitAllKeepsTheRecordsOfARefundInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := refundstest.NewServer(t)
		client := fake.Client()
		warm(t, client)
		warmed := len(fake.Submitted())
		began := time.Now()
		fake.ScriptFunc(func(r refundstest.Request) refundstest.Fault {
			fault := refundstest.Fault{HeaderDelay: time.Second}
			if r.Path == "/v1/a/refunds" && time.Since(began) == 0 {
				fault.Status = http.StatusServiceUnavailable
			}
			return fault
		})
		items := func(yield func(refunds.Item) bool) {
			for i, account := range []string{"a", "b", "a", "c", "b", "a"} {
				yield(refunds.Item{AccountID: account, Refund: &refunds.Refund{RefundID: "rf_1", Amount: new(int64(i))}})
			}
		}
		for s, end := range client.SubmitAll(t.Context(), items, refunds.BulkOptions{}) {
			if end != nil || (s.Err != nil) != (s.Index == 0) {
				t.Errorf("%v: %v, %v", s, s.Err, end)
			}
		}
		last := map[string]time.Time{}
		var order []int64
		for i, r := range fake.Requests()[warmed:] {
			order = append(order, *fake.Submitted()[warmed+i].Amount)
			if before, ok := last[r.Path]; ok && r.Time.Sub(before) < time.Second || !ok && !r.Time.Equal(began) {
				t.Errorf("%s came after %v", r.Path, r.Time.Sub(began))
			}
			last[r.Path] = r.Time
		}
		slices.Sort(order[:3])
		slices.Sort(order[3:5])
		if !slices.Equal(order, []int64{0, 1, 3, 2, 4, 5}) {
			t.Errorf("they arrived in the order %v", order)
		}
	})
}

// The attempts before a record was held back count in its result and in its error.
func TestSubmitAllCountsTheAttemptsOfAllSendings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := refundstest.NewServer(t)
		client := fake.Client()
		warm(t, client)
		fake.Script(refundstest.Fault{Status: 429}, refundstest.Fault{Status: 429}, refundstest.Fault{Status: 400})
		for s := range client.SubmitAll(t.Context(), refunds.Items("acct", named("a")), refunds.BulkOptions{}) {
			o, failed := outcome(t, nil, s.Err)
			if got := [...]int{s.Attempts, o.Attempts, failed.Attempts}; got != [...]int{3, 3, 3} || failed.StatusCode != 400 {
				t.Errorf("%v attempts: %v", got, s.Err)
			}
		}
	})
}

// An unusable item is not sent, and the others are. Options of its own do not make it usable.
func TestSubmitAllGoesOnAfterUnusableItems(t *testing.T) {
	s := &service{}
	own := []refunds.Option{refunds.WithHeader("X-Record", "1")}
	bad := &refunds.Refund{RefundID: "rf_bad", AdditionalData: refunds.AdditionalData{Metadata: map[string]any{"f": func() {}}}}
	good := &refunds.Refund{RefundID: "rf_good"}
	items := []refunds.Item{
		{AccountID: "acct"}, {AccountID: "acct", Refund: bad}, {AccountID: "acct", Refund: bad}, {AccountID: "acct", Refund: &refunds.Refund{}}, {Refund: good},
		{AccountID: "..", Refund: good, Options: own}, {AccountID: "acct", Refund: &refunds.Refund{RefundID: "rf_text", Currency: "\xff"}, Options: own},
		{AccountID: "acct", Refund: good, Options: []refunds.Option{refunds.WithHeader("Host", "canary")}},
		{AccountID: "acct", Refund: good, Options: []refunds.Option{refunds.WithRateLimit(1, 1)}},
		{AccountID: "acct", Refund: good},
	}
	n := 0
	for one, end := range s.client(t).SubmitAll(t.Context(), slices.Values(items), refunds.BulkOptions{Concurrency: 10_000}) {
		item, id := items[one.Index], ""
		if item.Refund != nil {
			id = item.Refund.RefundID
		}
		if end != nil || one.RefundID != id || one.AccountID != item.AccountID {
			t.Errorf("%v of %q: %v", one, one.RefundID, end)
		}
		if n++; one.Index == len(items)-1 {
			if one.Err != nil {
				t.Error(one.Err)
			}
		} else if !errors.Is(one.Err, refunds.ErrInvalidArgument) || !errors.Is(one.Err, refunds.ErrNotSent) {
			t.Errorf("%v: %v", one, one.Err)
		} else {
			testkit.NoLeak(t, one.Err, "canary")
		}
	}
	if n != len(items) || !slices.Equal(s.ids(), []string{"rf_good"}) {
		t.Errorf("%d results, sent %v", n, s.ids())
	}
}

// The options of the call hold for each item, its own options win, and no item gets those of
// another, even if the caller's slice has room for more.
func TestSubmitAllTakesOptions(t *testing.T) {
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
		if got := r.Header.Get("X-Run") + " " + r.Header.Get("Idempotency-Key"); got != want {
			t.Errorf("%s was sent with %q", id, got)
		}
		if sent[id]++; sent[id] == 1 && id == "own_7" {
			return testkit.Answer(429, "")(r)
		}
		return testkit.Answer(200, "")(r)
	})
	items := func(yield func(refunds.Item) bool) {
		for i := range 100 {
			id := fmt.Sprint("own_", i)
			own := []refunds.Option{refunds.WithHeader("Idempotency-Key", "key of "+id), refunds.WithHeader("X-Run", "own")}
			if i%4 == 0 {
				id, own = fmt.Sprint("plain_", i), nil
			}
			if !yield(refunds.Item{AccountID: "acct", Refund: &refunds.Refund{RefundID: id}, Options: own}) {
				return
			}
		}
	}
	opts := append(make([]refunds.Option, 0, 8), refunds.WithHeader("X-Run", "call"), refunds.WithRetryWait(0, 0))
	for s, end := range clientOver(t, network).SubmitAll(t.Context(), items, refunds.BulkOptions{Concurrency: 10}, opts...) {
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

// A record may wait for the limiter for longer than a call may take. Its request may not.
func TestSubmitAllIsPatientWithTheLimiterAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		counts, end := count(t, (&service{}).client(t, refunds.WithRateLimit(rate.Every(time.Minute), 1)), refunds.Items("acct", numbered(20)), refunds.BulkOptions{})
		if took := time.Since(began); counts[refunds.OutcomeAccepted] != 20 || end != nil || took != 19*time.Minute {
			t.Errorf("%v after %v: %v", counts, took, end)
		}
		s := &service{latency: func(string) time.Duration { return time.Hour }}
		for one := range s.client(t, refunds.WithAttemptTimeout(0)).SubmitAll(t.Context(), refunds.Items("acct", numbered(1)), refunds.BulkOptions{}) {
			if took := time.Since(s.began); !errors.Is(one.Err, refunds.ErrTimeout) || one.Outcome != unknown || took != 90*time.Second {
				t.Errorf("%v after %v: %v", one, took, one.Err)
			}
		}
	})
}

func TestSubmitAllResubmitsOnTheCallersWord(t *testing.T) {
	for _, test := range []struct {
		opts     []refunds.Option
		outcome  refunds.Outcome
		attempts int
	}{
		{nil, unknown, 1},
		{[]refunds.Option{refunds.WithResubmit()}, refunds.OutcomeAccepted, 2},
	} {
		mock := newMock(testkit.Answer(503, ""), testkit.Answer(200, ""))
		var last refunds.BulkProgress
		o := refunds.BulkOptions{Progress: func(p refunds.BulkProgress) { last = p }}
		for s, end := range newClient(t, mock, test.opts...).SubmitAll(t.Context(), refunds.Items("acct-1", numbered(1)), o) {
			if end != nil || s.Outcome != test.outcome || s.Attempts != test.attempts {
				t.Errorf("%v in %d attempts: %v, %v", s, s.Attempts, s.Err, end)
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
	one := func() iter.Seq[refunds.Item] { return refunds.Items("acct", numbered(1)) }
	ranged := client.SubmitAll(t.Context(), one(), refunds.BulkOptions{})
	for range ranged {
	}
	for name, results := range map[string]iter.Seq2[refunds.Submission, error]{
		"nil client":       (*refunds.Client)(nil).SubmitAll(t.Context(), one(), refunds.BulkOptions{}),
		"zero client":      new(refunds.Client).SubmitAll(t.Context(), one(), refunds.BulkOptions{}),
		"no context":       client.SubmitAll(none, one(), refunds.BulkOptions{}),
		"no input":         client.SubmitAll(t.Context(), nil, refunds.BulkOptions{}),
		"no refunds":       client.SubmitAll(t.Context(), refunds.Items("acct", nil), refunds.BulkOptions{}),
		"bad option":       client.SubmitAll(t.Context(), one(), refunds.BulkOptions{}, refunds.WithMaxRetries(-1)),
		"client's option":  client.SubmitAll(t.Context(), one(), refunds.BulkOptions{}, refunds.WithRateLimit(1, 1)),
		"bad concurrency":  client.SubmitAll(t.Context(), one(), refunds.BulkOptions{Concurrency: -1}),
		"ranged over once": ranged,
	} {
		n := 0
		for s, err := range results {
			n++
			if s != (refunds.Submission{}) || !errors.Is(err, refunds.ErrInvalidArgument) || len(outcomesOf(err)) > 0 {
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
