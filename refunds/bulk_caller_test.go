package refunds_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// heardOf makes a submission that panics. It returns the outcomes that the loop or Abandoned
// got, by refund_id.
func heardOf(ctx context.Context, t *testing.T, c *refunds.Client, items iter.Seq[refunds.Item], o refunds.BulkOptions) (heard map[string]refunds.Outcome, panicked any) {
	t.Helper()
	heard = map[string]refunds.Outcome{}
	hear := func(s refunds.Submission) {
		if _, twice := heard[s.RefundID]; twice {
			t.Errorf("%s has two results", s.RefundID)
		}
		heard[s.RefundID] = s.Outcome
	}
	abandoned := o.Abandoned
	o.Abandoned = func(s refunds.Submission) {
		hear(s)
		if abandoned != nil {
			abandoned(s)
		}
	}
	defer func() { panicked = recover() }()
	for s, end := range c.SubmitAll(ctx, items, o) {
		if end == nil {
			hear(s)
		}
	}
	return heard, nil
}

// A panic of the caller's function reaches the caller, and no record loses its result.
func TestSubmitAllSurvivesPanics(t *testing.T) {
	var mu sync.Mutex
	calls := 0
	at20 := func(fail func()) {
		mu.Lock()
		calls++
		now := calls == 20
		mu.Unlock()
		if now {
			fail()
		}
	}
	throw := func() { panic("on purpose") }
	progress := func(p refunds.BulkProgress) {
		if p.Done == 20 {
			throw()
		}
	}
	source := func(fail func()) []refunds.Option {
		return []refunds.Option{refunds.WithTokenSource(refunds.TokenFunc(func(context.Context) (string, error) {
			at20(fail)
			return "token", nil
		}))}
	}
	check := refunds.WithReceiptCheck(func(*refunds.Receipt) error {
		at20(throw)
		return nil
	})
	for name, test := range map[string]struct {
		options []refunds.Option
		bulk    refunds.BulkOptions
		rf19    []refunds.Outcome // one of them
	}{
		"progress":                             {nil, refunds.BulkOptions{Progress: progress}, []refunds.Outcome{accepted, notSent}}, // with eight in flight, it may not have left
		"abandoned":                            {nil, refunds.BulkOptions{Progress: progress, Abandoned: func(refunds.Submission) { throw() }}, []refunds.Outcome{accepted, notSent}},
		"token source":                         {source(throw), refunds.BulkOptions{Concurrency: 1}, []refunds.Outcome{notSent}},
		"token source that ends its goroutine": {source(runtime.Goexit), refunds.BulkOptions{Concurrency: 1}, []refunds.Outcome{notSent}},
		"receipt check":                        {[]refunds.Option{check}, refunds.BulkOptions{Concurrency: 1}, []refunds.Outcome{unknown}},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls = 0
			fake := refundstest.NewServer(t)
			heard, panicked := heardOf(t.Context(), t, fake.Client(test.options...), numbered(100), test.bulk)
			if panicked == nil {
				t.Errorf("%s: the caller's panic is lost", name)
			}
			for _, r := range fake.Recorded() {
				if id := r.Refund.RefundID; heard[id] != accepted && (id != "rf_19" || !slices.Contains(test.rf19, unknown)) {
					t.Errorf("%s: %s was recorded, and reported as %v", name, id, heard[id])
				}
			}
			if n := len(fake.Recorded()); len(heard) < 20 || n > 40 || !slices.Contains(test.rf19, heard["rf_19"]) {
				t.Errorf("%s: heard of %d, %d recorded, rf_19 is %v", name, len(heard), n, heard["rf_19"])
			}
		})
	}
}

// A panicsAt is the handler of a logger that panics at a message.
type panicsAt struct {
	slog.Handler
	message string
}

func (panicsAt) Enabled(context.Context, slog.Level) bool { return true }

func (h panicsAt) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.message {
		panic("on purpose")
	}
	return nil
}

// A logger that panics as submission pauses or resumes costs no
// record its result.
func TestSubmitAllSurvivesALoggerThatPanics(t *testing.T) {
	for name, message := range map[string]string{"at a pause": "pause", "at its end": "resume"} {
		synctest.Test(t, func(t *testing.T) {
			fake := sandbox.NewFake(t, sandbox.Refunds)
			fake.ScriptFunc(func(sandbox.Request) sandbox.Fault {
				if len(fake.Requests()) < 35 {
					return sandbox.Fault{Status: http.StatusServiceUnavailable}
				}
				return sandbox.Fault{}
			})
			taken := 0
			items := func(yield func(refunds.Item) bool) {
				for i := range numbered(60) {
					if taken++; !yield(i) {
						return
					}
				}
			}
			client := clientOver(t, fake.HTTPClient().Transport, refunds.WithLogger(slog.New(panicsAt{slog.DiscardHandler, message})))
			heard, panicked := heardOf(t.Context(), t, client, items, refunds.BulkOptions{Concurrency: 1})
			if panicked != "on purpose" || len(heard) != taken {
				t.Errorf("%s: %v, %d taken, heard of %d", name, panicked, taken, len(heard))
			}
			for _, r := range fake.Refunds() {
				if id := r.RefundID; heard[id] != accepted {
					t.Errorf("%s: %s was recorded, and reported as %v", name, id, heard[id])
				}
			}
		})
	}
}

// A panic after the loop was left reaches the caller, too, and so does that of a Submit.
func TestLatePanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: func(id string) time.Duration { return time.Duration(len(id)) * time.Second }}
		client := s.client(t, refunds.WithReceiptCheck(func(*refunds.Receipt) error {
			if time.Since(s.began) > 3*time.Second {
				panic("on purpose")
			}
			return nil
		}))
		for name, call := range map[string]func(){
			"SubmitAll": func() {
				for range client.SubmitAll(t.Context(), named("aa", "bbbb"), refunds.BulkOptions{}) {
					break
				}
			},
			"Submit": func() { _, _ = client.Submit(t.Context(), "acct", record()) },
		} {
			func() {
				defer func() {
					if panicked := recover(); panicked != "on purpose" {
						t.Errorf("%s: %v", name, panicked)
					}
				}()
				call()
			}()
		}
	})
}

// A limiter in an item's own options that has no time left, or fails, ends that item alone.
func TestSubmitAllOutlastsAnItemsOwnLimiter(t *testing.T) {
	for name, limiter := range map[string]refunds.Limiter{
		"no time left": rate.NewLimiter(rate.Every(time.Hour), 1), // the next one comes after the deadline
		"fails":        refusal(errors.New("down")),
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			items := with(table("a", "slow", "slow", "slow", "slow", "slow", "slow", "b"), "slow", refunds.WithLimiter(limiter))
			var got []string
			paused := false
			o := refunds.BulkOptions{Concurrency: 1, Progress: func(p refunds.BulkProgress) { paused = paused || p.Paused() }}
			for s := range (&service{}).client(t).SubmitAll(ctx, items, o) {
				got = append(got, s.AccountID+" "+s.Outcome.String())
			}
			if len(got) != 8 || got[7] != "b accepted" || paused {
				t.Errorf("%s: %q, paused %v", name, got, paused)
			}
		})
	}
}
