package adaptive

import (
	"math"
	"time"
)

// The constants were chosen by measuring what each of them costs in use and in
// refusals: go test ./internal/adaptive -v -matrix.
const (
	floor     = 1.0 / 60 // requests a second: below one a minute nothing can be learned
	gap       = 0.03     // share of the base that the rate stays below after a cut
	power     = 3        // of the curve on which the rate returns
	minPeriod = 35.0     // seconds from a cut back to the base, at least
	minCount  = 90.0     // requests in them, at least
	keep      = 0.98     // of a rate that was refused only after a long quiet
	soon      = 0.9      // of a rate that was refused again at once
)

// A search decides the rate. Times between its marks are seconds.
type search struct {
	most, rate float64
	base       float64 // what the service seems to allow
	limited    bool    // a first refusal was seen
	sure       bool    // base was measured, and not only halved

	mark  time.Time // of the last cut, or the end of the last idle time
	count float64   // accepted since mark
	held  float64   // from mark to the first acceptance after it: how long a window stayed closed

	tick  time.Time // of the last look at the rate
	since float64   // accepted since tick
	quiet float64   // periods without a refusal in which the rate was used
}

// period is the time from a cut back to the base. It is shorter while the base
// is a guess.
func (s *search) period() float64 {
	if s.sure {
		return max(minPeriod, minCount/s.rate)
	}
	return max(minPeriod, minCount/s.rate) / 3
}

// step is the time between two looks at the rate.
func (s *search) step() float64 { return max(1, 5/s.rate) }

func (s *search) accepted(now time.Time) {
	if s.count == 0 {
		s.held = now.Sub(s.mark).Seconds()
		s.tick, s.since = now, 0
	}
	s.count++
	s.since++
	passed := now.Sub(s.tick).Seconds()
	if passed < s.step() {
		return
	}
	// Only a rate that held the callers back has been tried.
	switch used := s.since >= 0.7*s.rate*passed; {
	case !used:
		s.mark, s.count, s.held = now, 0, 0
	case !s.limited:
		s.rate *= 2
	default:
		s.quiet += passed / s.period()
		s.rate = s.base * (1 - gap + gap*math.Pow(s.quiet, power))
	}
	s.rate = min(s.rate, s.most)
	s.tick, s.since = now, 0
}

func (s *search) refused(now time.Time) {
	if now.Sub(s.tick).Seconds() > 3*s.step() && s.limited {
		s.mark, s.count, s.held = now, 0, 0 // the callers had been idle
	}
	passed := now.Sub(s.mark).Seconds()
	// A Retry-After is in whole seconds: up to one of them was not the window's.
	measured := min(s.rate, s.count/max(passed-min(s.held, 1.1), 0.001))
	window := s.count >= 8 && s.held > passed/4+3/s.rate
	first, enough := !s.limited, true
	switch {
	case first: // the last doubling was too much
		s.limited, s.base = true, s.rate/2
	case s.quiet > 0.5 && !window: // about here, or the limit has risen
		s.base = max(keep*s.rate, measured)
	case window: // what a long window let through is its limit
		s.base = measured
	case s.count >= 20: // the service was full all the time, so this is its rate
		s.base = max(measured, s.rate/2)
	default: // too little was seen to measure
		s.base, enough = soon*s.rate, false
	}
	if enough {
		s.sure, s.mark, s.count = !first, now, 0
	}
	s.base = max(s.base, floor)
	s.rate = s.base * (1 - gap)
	s.quiet, s.tick, s.since = 0, now, 0
}
