package refunds_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// The function before sending runs after every wait, for each attempt.
func TestBeforeSend(t *testing.T) {
	var order []string
	step := func(name string) func(context.Context) error {
		return func(context.Context) error {
			order = append(order, name)
			return nil
		}
	}
	synctest.Test(t, func(t *testing.T) {
		fake := sandbox.NewFake(t, sandbox.Refunds)
		fake.ScriptFunc(func(sandbox.Request) sandbox.Fault {
			order = append(order, "request")
			if len(order) == 4 {
				return sandbox.Fault{Status: 429}
			}
			return sandbox.Fault{}
		})
		token := refunds.TokenFunc(func(ctx context.Context) (string, error) { return "token", step("token")(ctx) })
		_, err := clientOver(t, fake.HTTPClient().Transport, refunds.WithTokenSource(token), refunds.WithLimiter(limiterFunc(step("limiter")))).
			Submit(t.Context(), "acct-1", record(), refunds.WithBeforeSend(step("mark")))
		if err != nil {
			t.Error(err)
		}
	})
	if want := []string{"token", "limiter", "mark", "request", "token", "limiter", "mark", "request"}; !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
}

// If the mark of a refund fails, it is not sent, and no other refund suffers.
func TestBeforeSendFails(t *testing.T) {
	marked := errors.New("it is marked already")
	fail := refunds.WithBeforeSend(func(context.Context) error { return marked })
	synctest.Test(t, func(t *testing.T) {
		fake := refundstest.NewServer(t)
		var log strings.Builder
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		_, err := fake.Client(refunds.WithLogger(logger)).Submit(t.Context(), "acct-1", record(), fail)
		if !errors.Is(err, marked) || !errors.Is(err, refunds.ErrNotSent) || !errors.Is(err, refunds.ErrNotBegun) || refunds.ActionOf(err) != refunds.ActionResubmit {
			t.Error(err)
		}
		if got := log.String(); strings.Contains(got, "level=INFO") || !strings.Contains(got, "condition=not_begun") {
			t.Errorf("a refund that came twice is logged as\n%s", got)
		}

		fake.Script(refundstest.Fault{Status: 503})
		begun := false
		once := refunds.WithBeforeSend(func(context.Context) error {
			if begun {
				return marked
			}
			begun = true
			return nil
		})
		if _, err = fake.Client().Submit(t.Context(), "acct-1", record(), refunds.WithResubmit(), once); !errors.Is(err, refunds.ErrOutcomeUnknown) {
			t.Errorf("the second attempt: %v", err)
		}

		sent := len(fake.Submitted())
		began, failed := time.Now(), 0
		items := with(table(repeat(50, "acct-1", "acct-2")...), "acct-2", fail)
		for s, err := range fake.Client().SubmitAll(t.Context(), items, refunds.BulkOptions{}) {
			if err != nil {
				t.Error(err)
			}
			if errors.Is(s.Err, marked) && s.Outcome == refunds.OutcomeNotSent {
				failed++
			}
		}
		if took := time.Since(began); failed != 50 || len(fake.Submitted()) != sent+50 || took > time.Second {
			t.Errorf("%d failed, %d were sent in %v", failed, len(fake.Submitted())-sent, took)
		}
	})
}
