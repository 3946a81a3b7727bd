package refunds_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/internal/sandbox"
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
				o := refunds.BulkOptions{Concurrency: 2, Grace: test.grace}
				// The second waits for the first, the last is not taken.
				for s, end := range s.warmClient(t).SubmitAll(ctx, named("a", "a", "b", "c"), o) {
					err := cmp.Or(end, s.Err)
					if err != nil && (!errors.Is(err, ended) || !errors.Is(err, cause)) {
						t.Errorf("%s: %v", test.name, err)
					}
					got = append(got, summary(s, nil))
				}
				slices.Sort(got) // by the index, and the end is last
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

// An input that ends because of the context does not look complete. After its end, the input
// is not asked.
func TestSubmitAllTellsThatTheContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := (&service{}).client(t)
	for _, want := range [][]string{{"0 rf_0 accepted", "1 rf_1 accepted", "the end, canceled"}, {"the end, canceled"}} {
		var got []string
		for s, err := range client.SubmitAll(ctx, func(yield func(refunds.Item) bool) {
			numbered(2)(yield)
			cancel()
		}, refunds.BulkOptions{Concurrency: 1}) {
			got = append(got, summary(s, err))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The error that ends a submission is about no refund, and the same call is not to be made
// again. A record that was refused, and waited to be sent again, is rejected.
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
		"the deadline in flight":  {200, 2 * time.Second, refunds.BulkOptions{Grace: -1}, nil, "deadline_exceeded", []error{context.DeadlineExceeded}, 2 * time.Second},
		"the deadline in a pause": {503, 30 * time.Second, refunds.BulkOptions{GiveUpAfter: -1, Grace: -1}, nil, "deadline_exceeded", []error{context.DeadlineExceeded}, 30 * time.Second},
		"a limit beyond it":       {200, 10 * time.Second, refunds.BulkOptions{}, []refunds.Option{refunds.WithRateLimit(rate.Every(7*time.Second), 1)}, "local_limit", []error{refunds.ErrLocalLimit, context.DeadlineExceeded}, 10 * time.Second},
		"the service fails":       {429, time.Hour, refunds.BulkOptions{GiveUpAfter: time.Minute}, nil, "suspended", []error{refunds.ErrSuspended, refunds.ErrRateLimited}, 90 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{latency: func(string) time.Duration { return 3 * time.Second }, status: func(string) int { return test.status }}
			client := s.client(t, test.opts...)
			ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
			defer cancel()
			paused := false
			test.o.Progress = func(p refunds.BulkProgress) { paused = paused || p.Paused() }
			var last refunds.Submission
			var end error
			for last, end = range client.SubmitAll(ctx, numbered(100), test.o) {
				if last.Outcome == notSent && last.Attempts > 0 {
					t.Errorf("%s: %v in %d attempts", name, last, last.Attempts)
				}
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
			if outcomesOf(end) > 0 || refunds.ActionOf(end) != find || strings.Contains(end.Error(), "refund ") {
				t.Errorf("%s: it is about a refund: %v", name, end)
			}
			if took := time.Since(s.began); took > test.after || paused != (test.status != 200) {
				t.Errorf("%s: after %v, paused %t", name, took, paused)
			}
		})
	}
}

// A context of the caller's own kind reaches what is derived from it a moment later. Nothing new is
// sent in that moment.
func TestSubmitAllSendsNothingAfterTheEnd(t *testing.T) {
	for range 100 {
		ended := &endedLater{Context: t.Context(), done: make(chan struct{})}
		fake := sandbox.NewFake(t, sandbox.Refunds)
		fake.ScriptFunc(func(sandbox.Request) sandbox.Fault {
			ended.end()
			return sandbox.Fault{}
		})
		for range clientOver(t, fake.HTTPClient().Transport).SubmitAll(ended, numbered(3), refunds.BulkOptions{Concurrency: 1}) {
		}
		if n := len(fake.Refunds()); n != 1 {
			t.Fatalf("%d recorded", n)
		}
	}
}

type endedLater struct {
	context.Context
	once sync.Once
	done chan struct{}
}

func (c *endedLater) end()                  { c.once.Do(func() { close(c.done) }) }
func (c *endedLater) Done() <-chan struct{} { return c.done }
func (c *endedLater) Err() error {
	select {
	case <-c.done:
		return context.Canceled
	default:
		return nil
	}
}
