package refunds_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/refunds"
)

// When the context ends, what is on the wire settles within the grace, and
// nothing else is sent.
func TestSubmitAllLetsTheWireFinish(t *testing.T) {
	cause := errors.New("the shop closed")
	for _, test := range []struct {
		name  string
		grace time.Duration
		took  time.Duration
		a, b  string // which are on the wire
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
				for s, err := range s.client(t).SubmitAll(ctx, refunds.Items("acct", named("a", "a", "b", "c")), o) {
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

// What waits for the limiter is not on the wire, and a refused attempt is not
// repeated in the grace.
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
		for s, err := range limited.SubmitAll(ctx, refunds.Items("acct", numbered(100)), refunds.BulkOptions{}) {
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

// The context's values reach the wire, in the grace too.
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

// However the loop is left, the outcome of each record that was taken is heard.
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
				o := refunds.BulkOptions{Concurrency: 4, Abandoned: func(s refunds.Submission, err error) { got = append(got, summary(s, err)) }}
				for s, err := range client.SubmitAll(t.Context(), refunds.Items("acct", named("a", "b", "c", "c", "d", "e")), o) {
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

// What was not sent is yielded in the order of the input.
func TestSubmitAllYieldsTheUnsentInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := &service{latency: func(string) time.Duration { return time.Minute }}
		ids := strings.Split("aabbccddeeffgghhiijjkkllmmnnooppqqrr", "")
		var unsent []int
		for s := range s.client(t).SubmitAll(ctx, refunds.Items("acct", named(ids...)), refunds.BulkOptions{Concurrency: len(ids)}) {
			if s.Outcome == refunds.OutcomeNotSent {
				unsent = append(unsent, s.Index)
			}
		}
		if len(unsent) != len(ids)/2 || !slices.IsSorted(unsent) {
			t.Errorf("%v", unsent)
		}
	})
}

// A panic of what was in flight when the loop was left reaches the caller, too.
func TestSubmitAllPassesALatePanicOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: func(id string) time.Duration { return time.Duration(len(id)) * time.Second }}
		var checked atomic.Int32
		client := s.client(t, refunds.WithReceiptCheck(func(*refunds.Receipt) error {
			if checked.Add(1) == 2 {
				panic("on purpose")
			}
			return nil
		}))
		defer func() {
			if panicked := recover(); panicked != "on purpose" {
				t.Errorf("%v, of %d receipts", panicked, checked.Load())
			}
		}()
		for range client.SubmitAll(t.Context(), refunds.Items("acct", named("a", "bb")), refunds.BulkOptions{}) {
			break
		}
	})
}

// An input that ends with the context does not look like one that is complete.
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
