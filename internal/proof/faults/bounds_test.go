package faults

import (
	"context"
	"log/slog"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
)

// limiter is the one to be given to a client, nil for none.
func (w *wire) limiter() bins.Limiter {
	if w.w.settings.limit == 0 || !w.w.settings.ownLimiter {
		return nil
	}
	return &watchedLimiter{w, rate.NewLimiter(w.w.settings.limit, w.w.settings.burst)}
}

type watchedLimiter struct {
	w *wire
	*rate.Limiter
}

func (l *watchedLimiter) Wait(ctx context.Context) error {
	does := l.w.w.misbehave(ctx, limiter, true)
	if does == fails {
		return errThrown
	}
	var err error
	if does != lies {
		err = l.Limiter.Wait(ctx)
	}
	if err == nil {
		l.w.mu.Lock()
		l.w.leaves++
		l.w.mu.Unlock()
	}
	return err
}

// A watchedLogger is the caller's, for all that it is told.
type watchedLogger struct{ w *world }

func (watchedLogger) Enabled(context.Context, slog.Level) bool { return true }
func (l watchedLogger) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l watchedLogger) WithGroup(string) slog.Handler          { return l }

func (l watchedLogger) Handle(ctx context.Context, _ slog.Record) error {
	if l.w.misbehave(ctx, logger, true) == fails {
		return errThrown
	}
	return nil
}

// The budget as it is documented: so much at first, so much for each repetition,
// and so much at most that a success earns.
const (
	budgetFull   = 500
	costRetry    = 5
	earnedAtMost = 10
)

func (w *wire) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unclosed != 0 {
		defer w.w.violate(leaked, "%d bodies were not closed", w.unclosed)
	}
	spent, earned := 0, 0
	for _, j := range w.journeys {
		spent += max(0, j.sent-j.hops-1) * costRetry
		if end := j.trail[len(j.trail)-1]; end.status/100 == 2 {
			earned += earnedAtMost
		}
	}
	if spent > budgetFull+earned {
		defer w.w.violate(overBudget, "repetitions for %d of %d", spent, budgetFull+earned)
	}
	if w.w.settings.limit > 0 && w.w.parts.part != limiter {
		if i, n := w.crowded(); n > 0 {
			defer w.w.violate(overLimit, "%d requests within %v", n, w.sends[i+n-1].Sub(w.sends[i]))
		}
	}
}

// crowded finds more requests than the limit lets through in their time.
func (w *wire) crowded() (from, n int) {
	for i := range w.sends {
		for k := i; k < len(w.sends); k++ {
			allowed := float64(w.w.settings.burst) + float64(w.w.settings.limit)*w.sends[k].Sub(w.sends[i]).Seconds()
			if n := k - i + 1; float64(n) > allowed+0.001 {
				return i, n
			}
		}
	}
	return 0, 0
}
