package refunds_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

func records(n int) []*refunds.Refund {
	list := make([]*refunds.Refund, n)
	for i := range list {
		list[i] = &refunds.Refund{RefundID: fmt.Sprint("re-", i)}
	}
	return list
}

// heardOf runs a submission that panics, and returns the outcomes that the loop
// or Abandoned was told.
func heardOf(t *testing.T, c *refunds.Client, n int, o refunds.BulkOptions) (heard map[string]refunds.Outcome, panicked any) {
	t.Helper()
	heard = map[string]refunds.Outcome{}
	hear := func(s refunds.Submission, _ error) {
		if _, twice := heard[s.RefundID]; twice {
			t.Errorf("%s has two results", s.RefundID)
		}
		heard[s.RefundID] = s.Outcome
	}
	abandoned := o.Abandoned
	o.Abandoned = func(s refunds.Submission, err error) {
		hear(s, err)
		if abandoned != nil {
			abandoned(s, err)
		}
	}
	defer func() { panicked = recover() }()
	for s, err := range c.SubmitAll(t.Context(), refunds.Items("acct", slices.Values(records(n))), o) {
		hear(s, err)
	}
	return heard, nil
}

// What a function of the caller panics with reaches the caller, and the result of
// no record is lost to it.
func TestSubmitAllSurvivesPanics(t *testing.T) {
	calls := 0
	for name, test := range map[string]struct {
		options []refunds.Option
		bulk    refunds.BulkOptions
	}{
		"progress": {nil, refunds.BulkOptions{Progress: func(p refunds.BulkProgress) {
			if p.Done == 20 {
				panic("on purpose")
			}
		}}},
		"abandoned": {nil, refunds.BulkOptions{
			Progress: func(p refunds.BulkProgress) {
				if p.Done == 20 {
					panic("on purpose")
				}
			},
			Abandoned: func(refunds.Submission, error) { panic("on purpose") },
		}},
		"token source": {[]refunds.Option{refunds.WithTokenSource(refunds.TokenFunc(func(context.Context) (string, error) {
			if calls++; calls == 20 {
				panic("on purpose")
			}
			return "token", nil
		}))}, refunds.BulkOptions{Concurrency: 1}},
		"token source that ends its goroutine": {[]refunds.Option{refunds.WithTokenSource(refunds.TokenFunc(func(context.Context) (string, error) {
			if calls++; calls == 20 {
				runtime.Goexit()
			}
			return "token", nil
		}))}, refunds.BulkOptions{Concurrency: 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls = 0
			fake := refundstest.NewServer(t)
			heard, panicked := heardOf(t, fake.Client(test.options...), 100, test.bulk)
			if panicked == nil {
				t.Errorf("%s: the caller's panic is lost", name)
			}
			for _, r := range fake.Recorded() {
				if heard[r.Refund.RefundID] != refunds.OutcomeAccepted {
					t.Errorf("%s: %s was recorded, and %v is what was heard of it", name, r.Refund.RefundID, heard[r.Refund.RefundID])
				}
			}
			if n := len(fake.Recorded()); len(heard) < 20 || n > 40 {
				t.Errorf("%s: heard of %d, %d recorded", name, len(heard), n)
			}
			if last, of := heard["re-19"]; of && test.bulk.Concurrency == 1 && last != refunds.OutcomeNotSent {
				t.Errorf("%s: the record whose token failed is %v", name, last)
			}
		})
	}
}

// A deadline that leaves no time to send is the caller's, and says nothing of the
// service, also where the items have options of their own.
func TestSubmitAllEndsWithItsDeadline(t *testing.T) {
	for _, opts := range [][]refunds.Option{nil, {refunds.WithHeader("Idempotency-Key", "key")}} {
		synctest.Test(t, func(t *testing.T) {
			fake := refundstest.NewServer(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			items := func(yield func(refunds.Item) bool) {
				for i := range refunds.Items("acct", slices.Values(records(1000))) {
					if i.Options = opts; !yield(i) {
						return
					}
				}
			}
			paused, notSent, last := false, 0, error(nil)
			o := refunds.BulkOptions{Progress: func(p refunds.BulkProgress) { paused = paused || p.Paused }}
			for s, err := range fake.Client(refunds.WithRateLimit(1, 1)).SubmitAll(ctx, items, o) {
				switch {
				case s.Index < 0:
					last = err
				case s.Outcome == refunds.OutcomeNotSent:
					notSent++
				case err != nil:
					t.Error(err)
				}
			}
			if paused || notSent > 8 || !errors.Is(last, refunds.ErrLocalLimit) || !errors.Is(last, context.DeadlineExceeded) {
				t.Errorf("paused %v, %d not sent, and ended with %v", paused, notSent, last)
			}
			if n := len(fake.Recorded()); n < 50 {
				t.Errorf("%d recorded in a minute", n)
			}
		})
	}
}

// What a limiter fails with is not the end of the submission: neither a deadline of its
// own, nor the error of another client whose limit lets nothing through.
func TestSubmitAllOutlastsAFailureOfTheLimiter(t *testing.T) {
	_, foreign := (&service{}).client(t, refunds.WithLimiter(rate.NewLimiter(1, 0))).Submit(t.Context(), "acct", &refunds.Refund{RefundID: "rf"})
	for _, failure := range []error{context.DeadlineExceeded, foreign} {
		submitsPastALimiter(t, failure)
	}
}

func submitsPastALimiter(t *testing.T, failure error) {
	synctest.Test(t, func(t *testing.T) {
		fake, n := refundstest.NewServer(t), 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		counts := map[refunds.Outcome]int{}
		limiter := limiterFunc(func(context.Context) error {
			if n++; n == 20 {
				return fmt.Errorf("redis: %w", failure)
			}
			return nil
		})
		for s := range fake.Client(refunds.WithLimiter(limiter)).SubmitAll(ctx, refunds.Items("acct", numbered(500)), refunds.BulkOptions{Concurrency: 1}) {
			counts[s.Outcome]++
		}
		if counts[refunds.OutcomeAccepted] != 499 || counts[refunds.OutcomeNotSent] != 1 {
			t.Error(counts)
		}
	})
}
