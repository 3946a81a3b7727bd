package flow

import (
	"math"
	"time"
)

const (
	firstRequests = 10                     // leave at once
	enough        = 4                      // successes show that the service works
	doubling      = 200 * time.Millisecond // without a response, twice as many may be in flight
	doublings     = 5
)

// A start is the slow start of a window that knows no limit, at first and after an outage. A few
// requests leave at once, and more as time goes by, because the service may be slow. After a few
// successes single calls leave as they come. Bulk calls, which would send all they have, send one more
// for each success.
type start struct {
	began     time.Time // the first request left
	successes int
}

func (s *start) begins(now time.Time) {
	if s.began.IsZero() {
		s.began = now
	}
}

// allows returns how many requests may be in flight, and when that changes without a response;
// zero: it does not.
func (s *start) allows(now time.Time, bulk bool) (changes time.Time, most int) {
	if s.successes >= enough && !bulk {
		return changes, math.MaxInt
	}
	doubled := 0
	if !s.began.IsZero() {
		doubled = min(int(now.Sub(s.began)/doubling), doublings)
		if doubled < doublings {
			changes = s.began.Add(time.Duration(doubled+1) * doubling)
		}
	}
	return changes, firstRequests<<doubled + s.successes
}

// places is how many requests a level lets be in flight.
func places(level float64) int { return int(math.Ceil(max(level, 1) - 1e-9)) }
