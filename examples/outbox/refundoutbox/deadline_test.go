package refundoutbox

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

// An unnoticed context has a deadline that no timer has noticed, as after the
// process was frozen.
type unnoticed struct{ context.Context }

func (unnoticed) Done() <-chan struct{} { return nil }
func (unnoticed) Err() error            { return nil }

// TestLateRequest: a request whose deadline has passed does not leave, on a new
// connection and on a kept one, and is known not to have left.
func TestLateRequest(t *testing.T) {
	s := newSystem(t)
	submit := func(left time.Duration) error {
		ctx, cancel := withDeadline(t.Context(), time.Now().Add(left))
		defer cancel()
		later, stop := context.WithTimeout(unnoticed{ctx}, time.Minute)
		defer stop()
		_, err := s.w.Client.Submit(later, "acct", refund("a", 5), refunds.WithMaxRetries(0))
		return err
	}
	for range 2 {
		if err := submit(-time.Second); !errors.Is(err, refunds.ErrNotSent) {
			t.Errorf("late: %v", err)
		}
		if err := submit(time.Minute); err != nil {
			t.Error(err)
		}
	}
	if n := s.engine.RequestCount(sandbox.Refunds); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// TestOldMarker: the deadline is that of the marker.
func TestOldMarker(t *testing.T) {
	s := newSystem(t)
	c := &claim{Account: "acct", Content: []byte(`{"refund_id":"a"}`), marked: time.Now().Add(-submitTimeout)}
	if o := s.w.send(t.Context(), c); o.event != eventUnsent || s.engine.RequestCount(sandbox.Refunds) != 0 {
		t.Errorf("%+v", o)
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
