package fault

import (
	"context"
	"testing"
	"time"
	"unsafe"
)

// TestPassedByEitherClock: while the machine sleeps, only the wall clock goes on, and timers do not
// fire. Somebody may also set the wall clock back.
func TestPassedByEitherClock(t *testing.T) {
	// later returns a time that is later by the monotonic clock alone, for which package time has
	// no function: its second word counts by that clock.
	later := func(at time.Time, by time.Duration) time.Time {
		(*(*[2]int64)(unsafe.Pointer(&at)))[1] += int64(by)
		return at
	}
	now := time.Now()
	for name, test := range map[string]struct {
		deadline time.Time
		passed   bool
	}{
		"none":                        {time.Time{}, false},
		"to come":                     {now.Add(time.Hour), false},
		"past":                        {now.Add(-time.Hour), true},
		"past by the wall clock":      {later(now.Add(-time.Hour), 2*time.Hour), true},
		"past by the monotonic clock": {later(now.Add(time.Hour), -2*time.Hour), true},
		"without a monotonic clock":   {now.Add(-time.Hour).Round(0), true},
	} {
		if Passed(test.deadline) != test.passed {
			t.Errorf("%s: %v", name, !test.passed)
		}
	}
	slept, cancel := context.WithDeadline(t.Context(), later(now.Add(-time.Hour), 2*time.Hour))
	defer cancel()
	if slept.Err() != nil || EndOf(slept) != context.DeadlineExceeded {
		t.Errorf("while the timer has not fired: %v, %v", slept.Err(), EndOf(slept))
	}
}
