package bulk

import (
	"time"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/flow"
)

// longestRest is the longest wait that a service can impose on a loop.
const longestRest = time.Minute

// Fail tells the window that a request failed in a way that the next one may meet, too, and for how
// long the service wants to rest.
func Fail(w *flow.Window, request int, failure *fault.Failure) {
	w.Failed(request, failure.Condition())
	if failure.RetryAfter > 0 {
		w.Rests(request, min(failure.RetryAfter, longestRest))
	}
}

// GiveUpAt is when a loop that began at a time gives up, unless the service works before: after has
// passed since the outage or the loop began. It is zero without an outage, and if after is below zero.
func GiveUpAt(s flow.State, after time.Duration, began time.Time) time.Time {
	if !s.Paused || after < 0 {
		return time.Time{}
	}
	if s.Since.Before(began) {
		s.Since = began
	}
	return s.Since.Add(after)
}

// At returns a channel that receives at the earliest of the times that are not zero; nil if all are.
func At(times ...time.Time) <-chan time.Time {
	var earliest time.Time
	for _, t := range times {
		if !t.IsZero() && (earliest.IsZero() || t.Before(earliest)) {
			earliest = t
		}
	}
	if earliest.IsZero() {
		return nil
	}
	return time.After(time.Until(earliest))
}
