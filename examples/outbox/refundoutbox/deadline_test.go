package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

func (s *system) client() *refunds.Client {
	s.t.Helper()
	client, err := newClient(s.vars[settings.URL], "")
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// An unnoticed context has a deadline that no timer has noticed.
type unnoticed struct {
	context.Context
	deadline time.Time
}

func (c unnoticed) Deadline() (time.Time, bool) { return c.deadline, true }

// TestLateRequest: a request whose deadline has passed does not leave, on a new
// connection and on a kept one, and is known not to have left.
func TestLateRequest(t *testing.T) {
	s := newSystem(t)
	client := s.client()
	submit := func(left time.Duration) error {
		_, err := client.Submit(unnoticed{t.Context(), time.Now().Add(left)}, "acct", &refunds.Refund{RefundID: "a"}, refunds.WithMaxRetries(0))
		return err
	}
	for range 2 {
		if err := submit(-time.Second); !errors.Is(err, refunds.ErrNotSent) || !errors.Is(err, errLate) {
			t.Errorf("late: %v", err)
		}
		if err := submit(time.Minute); err != nil {
			t.Error(err)
		}
	}
	if s.requests() != 2 {
		t.Errorf("%d requests", s.requests())
	}
}

// TestOldMarker: the deadline is that of the marker.
func TestOldMarker(t *testing.T) {
	s := newSystem(t)
	w := &worker{client: s.client()}
	c := &claim{account: "acct", content: []byte(one), marked: time.Now().Add(-submitTimeout)}
	if o := w.send(t.Context(), c); o.state != pending || s.requests() != 0 {
		t.Errorf("%+v, %d requests", o, s.requests())
	}
}

// TestLate: a deadline has passed when it has by either clock.
func TestLate(t *testing.T) {
	deadline := time.Now()
	wall := deadline.Round(0)
	for name, test := range map[string]struct {
		monotonic, wall time.Time
		late            bool
	}{
		"in time":        {deadline.Add(-time.Second), wall.Add(-time.Second), false},
		"late":           {deadline, wall, true},
		"suspended":      {deadline.Add(-time.Second), wall.Add(time.Hour), true},
		"clock set back": {deadline, wall.Add(-time.Hour), true},
	} {
		if late(deadline, test.monotonic, test.wall) != test.late {
			t.Errorf("%s: want %v", name, test.late)
		}
	}
}

// TestRefusedOnce: attempts that were not refused do not count.
func TestRefusedOnce(t *testing.T) {
	s := newSystem(t)
	s.enqueue(one)
	s.set(`UPDATE outbox_refund SET attempts = 50`)
	s.engine.Script(sandbox.Refunds, sandbox.Fault{Status: 401})
	w := &worker{db: s.db, client: s.client(), limiter: rate.NewLimiter(rate.Inf, 1), stopping: t.Context(), breaker: breaker{say: t.Logf}}
	w.Work(t.Context(), &river.Job[submitArgs]{Args: submitArgs{Row: 1}})
	if s.states() != pending || s.requests() != 1 {
		t.Errorf("%s, %d requests", s.states(), s.requests())
	}
}
