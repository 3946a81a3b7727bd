package refunds_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/refunds"
)

// When the context ends, the requests in flight may finish within the grace period, and
// nothing else is sent.
func TestSubmitAllLetsTheWireFinish(t *testing.T) {
	cause := errors.New("the shop closed")
	for _, test := range []struct {
		name  string
		grace time.Duration
		took  time.Duration
		a, b  string // the outcomes of those in flight
	}{
		{"by default", 0, 12 * time.Second, "accepted", "accepted"},
		{"too short for one", 7 * time.Second, 8 * time.Second, "accepted", "unknown"},
		{"none", -1, time.Second, "unknown", "unknown"},
	} {
		for _, deadline := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := &service{latency: func(id string) time.Duration { return map[string]time.Duration{"a": 5, "b": 12}[id] * time.Second }}
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				ended := context.Canceled
				if deadline {
					var stop context.CancelFunc
					ctx, stop = context.WithTimeoutCause(ctx, time.Second, cause)
					ended = context.DeadlineExceeded
					defer stop()
				} else {
					time.AfterFunc(time.Second, func() { cancel(cause) })
				}
				var got []string
				o := refunds.BulkOptions{Concurrency: 2, Grace: test.grace, Ordered: true}
				// The second waits for the first, the last is not taken.
				for s, end := range s.warmClient(t).SubmitAll(ctx, refunds.Items("acct", named("a", "a", "b", "c")), o) {
					err := cmp.Or(end, s.Err)
					if err != nil && (!errors.Is(err, ended) || !errors.Is(err, cause)) {
						t.Errorf("%s: %v", test.name, err)
					}
					got = append(got, summary(s, nil))
				}
				want := []string{"0 a " + test.a, "1 a not sent", "2 b " + test.b, "the end"}
				if !slices.Equal(got, want) || len(s.ids()) != 2 {
					t.Errorf("%s: %q, want %q; sent %v", test.name, got, want, s.ids())
				}
				if took := time.Since(s.began); took != test.took {
					t.Errorf("%s: took %v, want %v", test.name, took, test.took)
				}
			})
		}
	}
}

// A record that waits for the limiter is not in flight, and no attempt is retried in the grace
// period.
func TestSubmitAllStartsNothingInTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{
			latency: func(string) time.Duration { return 5 * time.Second },
			status:  func(string) int { return http.StatusTooManyRequests },
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		limited := s.client(t, refunds.WithRateLimit(rate.Every(time.Hour), 1))
		outcomes := map[string]int{}
		for s, end := range limited.SubmitAll(ctx, refunds.Items("acct", numbered(100)), refunds.BulkOptions{}) {
			err := cmp.Or(end, s.Err)
			outcomes[s.Outcome.String()]++
			if s.Outcome == refunds.OutcomeRejected && (!errors.Is(err, refunds.ErrRateLimited) || s.Attempts != 1) {
				t.Errorf("%v after %d attempts", err, s.Attempts)
			}
		}
		if took := time.Since(s.began); took != 5*time.Second || len(s.ids()) != 1 || outcomes["rejected"] != 1 {
			t.Errorf("%v after %v, sent %v", outcomes, took, s.ids())
		}
	})
}

// Requests have the values of the context.
func TestSubmitAllKeepsTheContextsValues(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "trace")
	s := &service{}
	seen := 0
	watched := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Context().Value(key{}) == "trace" {
			seen++
		}
		return s.RoundTrip(r)
	})}
	for range s.client(t, refunds.WithHTTPClient(watched)).SubmitAll(ctx, refunds.Items("acct", numbered(1)), refunds.BulkOptions{}) {
	}
	if seen != 1 {
		t.Errorf("%d of %d requests had the value", seen, len(s.ids()))
	}
}

// However the loop is left, each record that was taken has its result.
func TestSubmitAllHandsOverWhatIsAbandoned(t *testing.T) {
	for name, leave := range map[string]func(){
		"break": func() {},
		"panic": func() { panic("the consumer failed") },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{latency: func(id string) time.Duration {
				return map[string]time.Duration{"a": 1, "b": 2, "c": 20, "d": 200}[id] * time.Second
			}}
			client := s.client(t, refunds.WithAttemptTimeout(time.Hour))
			var got []string
			func() {
				defer func() { _ = recover() }()
				o := refunds.BulkOptions{Concurrency: 4, Abandoned: func(s refunds.Submission) { got = append(got, summary(s, s.Err)) }}
				for s, end := range client.SubmitAll(t.Context(), refunds.Items("acct", named("a", "b", "c", "c", "d", "e")), o) {
					err := cmp.Or(end, s.Err)
					got = append(got, summary(s, err))
					time.Sleep(5 * time.Second)
					leave()
					break
				}
			}()
			want := []string{"0 a accepted", "3 c not sent, canceled", "1 b accepted", "2 c accepted", "4 d unknown, canceled", "5 e accepted"}
			if !slices.Equal(sorted(got), sorted(want)) || got[0] != want[0] {
				t.Errorf("%s: %q", name, got)
			}
			if took := time.Since(s.began); took != 36*time.Second || s.flying != 0 {
				t.Errorf("%s: took %v, %d in flight", name, took, s.flying)
			}
		})
	}
}

// An input that ends because of the context does not look complete.
func TestSubmitAllTellsThatTheContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &service{}
	var got []string
	for s, err := range s.client(t).SubmitAll(ctx, refunds.Items("acct", func(yield func(*refunds.Refund) bool) {
		for r := range numbered(3) {
			if !yield(r) {
				return
			}
		}
		cancel()
	}), refunds.BulkOptions{Concurrency: 1}) {
		got = append(got, summary(s, err))
	}
	if want := []string{"0 rf_0 accepted", "1 rf_1 accepted", "2 rf_2 accepted", "the end, canceled"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	got = nil
	for s, err := range s.client(t).SubmitAll(ctx, refunds.Items("acct", func(func(*refunds.Refund) bool) {
		t.Error("the input was asked for a record")
	}), refunds.BulkOptions{}) {
		got = append(got, summary(s, err))
	}
	if !slices.Equal(got, []string{"the end, canceled"}) {
		t.Errorf("an ended context: %q", got)
	}
}

// The error that ends a submission is about no refund, and the same call is not to be made
// again.
func TestEndOfSubmitAll(t *testing.T) {
	for name, test := range map[string]struct {
		status    int
		deadline  time.Duration
		o         refunds.BulkOptions
		opts      []refunds.Option
		condition string
		is        []error
		after     time.Duration
	}{
		"the deadline":            {200, 10 * time.Second, refunds.BulkOptions{Concurrency: 1}, nil, "deadline_exceeded", []error{context.DeadlineExceeded}, 12 * time.Second},
		"the deadline in a pause": {503, 10 * time.Second, refunds.BulkOptions{GiveUpAfter: -1, Grace: -1}, nil, "deadline_exceeded", []error{context.DeadlineExceeded}, 10 * time.Second},
		"a limit beyond it":       {200, 10 * time.Second, refunds.BulkOptions{}, []refunds.Option{refunds.WithRateLimit(rate.Every(7*time.Second), 1)}, "local_limit", []error{refunds.ErrLocalLimit, context.DeadlineExceeded}, 10 * time.Second},
		"the service fails":       {429, time.Hour, refunds.BulkOptions{GiveUpAfter: time.Minute}, nil, "suspended", []error{refunds.ErrSuspended, refunds.ErrRateLimited}, 90 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{latency: func(string) time.Duration { return 3 * time.Second }, status: func(string) int { return test.status }}
			client := s.client(t, test.opts...)
			ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
			defer cancel()
			paused := false
			test.o.Progress = func(p refunds.BulkProgress) { paused = paused || p.Paused }
			var last refunds.Submission
			var end error
			for last, end = range client.SubmitAll(ctx, refunds.Items("acct", numbered(100)), test.o) {
			}
			failed, ok := errors.AsType[*refunds.Error](end)
			if !ok || failed.Condition() != test.condition || failed.Retryable() || last != (refunds.Submission{}) {
				t.Fatalf("%s: %v with %v", name, end, last)
			}
			for _, condition := range test.is {
				if !errors.Is(end, condition) {
					t.Errorf("%s: %v is no %v", name, end, condition)
				}
			}
			if _, ok := errors.AsType[*refunds.OutcomeError](end); ok || len(outcomesOf(end)) > 0 || strings.Contains(end.Error(), "refund ") {
				t.Errorf("%s: it is about a refund: %v", name, end)
			}
			if took := time.Since(s.began); took > test.after || paused != (test.status != 200) {
				t.Errorf("%s: after %v, paused %t", name, took, paused)
			}
		})
	}
}
