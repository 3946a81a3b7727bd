package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riverqueue/river"
	"golang.org/x/time/rate"
)

func newBreaker(t *testing.T) *breaker { return &breaker{say: t.Logf} }

// TestBreaker: during an outage of an hour, few refunds are let through, and once
// one succeeds, all are.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t)
		began, through := time.Now(), 0
		for time.Since(began) < time.Hour {
			if _, err := b.wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			through++
			b.report(outcome{state: unknown, failed: true}, time.Now())
		}
		if through < 60 || through > 75 {
			t.Errorf("%d refunds were let through", through)
		}
		time.Sleep(pauseMost)
		b.report(outcome{state: accepted}, time.Now())
		at := time.Now()
		for range 100 {
			b.wait(t.Context())
		}
		if waited := time.Since(at); waited != 0 {
			t.Errorf("waited for %v after a success", waited)
		}
	})
}

// TestBreakerProbes: after a pause one goes through, and the others wait for what
// becomes of it.
func TestBreakerProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t)
		for range breakAfter {
			b.report(outcome{failed: true}, time.Now())
		}
		ctx, cancel := context.WithTimeout(t.Context(), pauseFirst+pauseFirst/2)
		defer cancel()
		through := make(chan error)
		for range 10 {
			go func() {
				_, err := b.wait(ctx)
				through <- err
			}()
		}
		passed := 0
		for range 10 {
			if <-through == nil {
				passed++
			}
		}
		if passed != 1 {
			t.Errorf("%d passed", passed)
		}
	})
}

// TestBreakerObeys: the service's word on when to come again holds for all.
func TestBreakerObeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t)
		b.report(outcome{failed: true, wait: 7 * time.Second}, time.Now())
		began := time.Now()
		b.wait(t.Context())
		if waited := time.Since(began); waited != 7*time.Second {
			t.Errorf("waited for %v", waited)
		}
	})
}

// TestBreakerTurns: a turn of which nothing came is another's.
func TestBreakerTurns(t *testing.T) {
	s := newSystem(t)
	w := &worker{db: s.db, limiter: rate.NewLimiter(rate.Inf, 1), stopping: t.Context(), breaker: breaker{say: t.Logf, failures: breakAfter}}
	if err := w.Work(t.Context(), &river.Job[submitArgs]{Args: submitArgs{Row: 7}}); err != nil {
		t.Fatal(err)
	}
	if wait, turn := w.breaker.enter(time.Now()); wait != 0 || !turn {
		t.Errorf("after a job that sends nothing, the next waits for %v", wait)
	}
}

// TestBreakerSays: an operator sees when it pauses, and when it goes on.
func TestBreakerSays(t *testing.T) {
	var said []string
	b := breaker{say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
	for range 3 * breakAfter {
		b.report(outcome{failed: true, reason: "timeout"}, time.Now())
	}
	b.report(outcome{}, time.Now())
	b.report(outcome{}, time.Now())
	if len(said) != 2 || !strings.HasPrefix(said[0], "pausing: 5 failures in a row, the last: timeout") || said[1] != "going on" {
		t.Errorf("%q", said)
	}
}

// A lockedDatabase takes nothing for a while.
type lockedDatabase struct {
	database
	until   time.Time
	settled []any
}

func (d *lockedDatabase) exec(_ context.Context, _ string, args ...any) (int64, error) {
	if time.Now().Before(d.until) {
		return 0, errors.New("locked")
	}
	d.settled = args
	return 1, nil
}

// TestRecordAgain: an answer is kept until it is written down, and nothing else is
// sent meanwhile.
func TestRecordAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &lockedDatabase{until: time.Now().Add(5 * time.Minute)}
		w := &worker{db: db, breaker: breaker{say: t.Logf}}
		go w.record(t.Context(), &claim{row: 1, attempt: 1}, outcome{state: accepted})
		time.Sleep(time.Second)
		began := time.Now()
		w.breaker.wait(t.Context())
		if db.settled == nil || time.Since(began) < 4*time.Minute {
			t.Errorf("the next refund went out after %v", time.Since(began))
		}
	})
}
