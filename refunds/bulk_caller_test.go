package refunds_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// A panic of the caller's function reaches the caller, and no record loses its result.
func TestSubmitAllSurvivesPanics(t *testing.T) {
	calls := 0
	progress := func(p refunds.BulkProgress) {
		if p.Done == 20 {
			panic("on purpose")
		}
	}
	source := func(fail func()) []refunds.Option {
		return []refunds.Option{refunds.WithTokenSource(refunds.TokenFunc(func(context.Context) (string, error) {
			if calls++; calls == 20 {
				fail()
			}
			return "token", nil
		}))}
	}
	for name, test := range map[string]struct {
		options []refunds.Option
		bulk    refunds.BulkOptions
	}{
		"progress":                             {nil, refunds.BulkOptions{Progress: progress}},
		"abandoned":                            {nil, refunds.BulkOptions{Progress: progress, Abandoned: func(refunds.Submission) { panic("on purpose") }}},
		"token source":                         {source(func() { panic("on purpose") }), refunds.BulkOptions{Concurrency: 1}},
		"token source that ends its goroutine": {source(runtime.Goexit), refunds.BulkOptions{Concurrency: 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls = 0
			fake := refundstest.NewServer(t)
			heard, panicked := heardOf(t.Context(), t, fake.Client(test.options...), refunds.Items("acct", numbered(100)), test.bulk)
			if panicked == nil {
				t.Errorf("%s: the caller's panic is lost", name)
			}
			for _, r := range fake.Recorded() {
				if heard[r.Refund.RefundID] != refunds.OutcomeAccepted {
					t.Errorf("%s: %s was recorded, and reported as %v", name, r.Refund.RefundID, heard[r.Refund.RefundID])
				}
			}
			if n := len(fake.Recorded()); len(heard) < 20 || n > 40 {
				t.Errorf("%s: heard of %d, %d recorded", name, len(heard), n)
			}
			if last, of := heard["rf_19"]; of && test.bulk.Concurrency == 1 && last != notSent {
				t.Errorf("%s: the token of rf_19 failed, and the record is %v", name, last)
			}
		})
	}
}

// A panic after the loop was left reaches the caller, too.
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
		for range client.SubmitAll(t.Context(), refunds.Items("acct", named("aa", "bbbb")), refunds.BulkOptions{}) {
			break
		}
	})
}

// If the check of a receipt panics, the panic reaches the caller and the outcome is unknown.
func TestReceiptCheckThatPanics(t *testing.T) {
	client := (&service{}).client(t, refunds.WithReceiptCheck(func(*refunds.Receipt) error { panic("on purpose") }))
	func() {
		defer func() {
			if recover() != "on purpose" {
				t.Error("the panic is lost")
			}
		}()
		_, _ = client.Submit(t.Context(), "acct-1", record())
	}()
	heard, panicked := heardOf(t.Context(), t, client, refunds.Items("acct", numbered(1)), refunds.BulkOptions{Abandoned: func(s refunds.Submission) {
		if s.Action() != find {
			t.Errorf("%v: %v", s.Err, s.Action())
		}
	}})
	if panicked != "on purpose" || len(heard) != 1 || heard["rf_0"] != unknown {
		t.Errorf("%v, %v", panicked, heard)
	}
}

// A failure of the limiter does not end the submission, even if the limiter's own deadline has
// passed, or if its error is that of another client with a limit of nothing.
func TestSubmitAllOutlastsAFailureOfTheLimiter(t *testing.T) {
	_, foreign := (&service{}).client(t, refunds.WithLimiter(rate.NewLimiter(1, 0))).Submit(t.Context(), "acct", &refunds.Refund{RefundID: "rf"})
	for _, failure := range []error{context.DeadlineExceeded, foreign} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			limiter := limiterFunc(func(context.Context) error {
				if n++; n == 20 {
					return fmt.Errorf("redis: %w", failure)
				}
				return nil
			})
			counts, end := count(t, (&service{}).client(t, refunds.WithLimiter(limiter)), refunds.Items("acct", numbered(500)), refunds.BulkOptions{Concurrency: 1})
			if counts[refunds.OutcomeAccepted] != 500 || end != nil {
				t.Error(counts, end)
			}
		})
	}
}

// A limiter in an item's own options that has no time left ends that item alone.
func TestSubmitAllOutlastsAnItemsOwnLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		limiter := rate.NewLimiter(rate.Every(time.Hour), 1) // the next one comes after the deadline
		items := with(table("a", "slow", "slow", "slow", "slow", "slow", "slow", "b"), func(account string) bool { return account == "slow" }, refunds.WithLimiter(limiter))
		var got []string
		paused := false
		o := refunds.BulkOptions{Concurrency: 1, Progress: func(p refunds.BulkProgress) { paused = paused || p.Paused }}
		for s := range (&service{}).client(t).SubmitAll(ctx, items, o) {
			got = append(got, s.AccountID+" "+s.Outcome.String())
		}
		if len(got) != 8 || got[7] != "b accepted" || paused {
			t.Errorf("%q, paused %v", got, paused)
		}
	})
}

// A record that was suspended tells what failed before it.
func TestSuspendedHasACause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down, suspended := errors.New("down"), 0
		client := (&service{}).client(t, refunds.WithLimiter(refusal{down}))
		for s, end := range client.SubmitAll(t.Context(), refunds.Items("acct", numbered(50)), refunds.BulkOptions{GiveUpAfter: time.Minute}) {
			err := end
			if err == nil {
				err = s.Err
			}
			if failure, _ := errors.AsType[*refunds.Error](err); failure.Cause() != down {
				t.Errorf("%v is caused by %v", err, failure.Cause())
			}
			if errors.Is(err, refunds.ErrSuspended) {
				suspended++
			}
		}
		if suspended == 0 {
			t.Error("nothing was suspended")
		}
	})
}
