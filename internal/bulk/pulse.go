package bulk

import (
	"time"

	"github.com/carddata/carddata-go/internal/fault"
	flow "github.com/carddata/carddata-go/internal/oldflow"
)

// A Meaning is what the end of a request shows about the service.
type Meaning int

const (
	Nothing  Meaning = iota // the request was not sent, or its caller ended it
	End                     // every further request would fail, too: the loop ends
	Deadline                // its caller's deadline passed before a response
	Success                 // the service works, even if it refused this request
	Account                 // its account is refused, which says nothing of the others
	Outage                  // the next request may fail, too
)

// Settle reports the end of a request to the window, with its time on the wire. The failure is that of
// an Outage or a Deadline. It reports whether the end counts as a failure of the service.
func Settle(w *flow.Window, request int, m Meaning, took time.Duration, failure *fault.Failure) (failed bool) {
	switch m {
	case Success:
		w.Succeeded(request, took)
	case Account:
		w.Answered(request)
	case Deadline:
		return w.Late(request, took, failure.Condition())
	case Outage:
		w.Failed(request, took, failure.Condition())
		return true
	default:
		w.Ignored(request, took)
	}
	return false
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

// past has received.
var past = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

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
	if left := time.Until(earliest); left > 0 {
		return time.After(left)
	}
	return past
}
