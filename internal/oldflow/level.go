package flow

import (
	"math"
	"time"
)

const (
	maxLate   = 2 * time.Millisecond
	slowest   = 5 * time.Second   // between two requests, without a pause
	firstNeed = 10                // successes
	first     = 10                // requests, before one has succeeded
	few       = 4                 // successes, at first and on the way back from an outage
	slowStart = 4                 // times the level
	anyLevel  = 1e4               // no limit is known
	leastStep = 1.05              // times the level
	mostStep  = 2                 // times the level
	beyond    = 1.4               // times the ceiling, which says little from there on
	mostHold  = 20 * time.Second  // after growing in vain
	margin    = 0.95              // of what the service accepted
	memory    = 150 * time.Second // after which a level that is not in use says little
)

// A level is how many requests leave in each round trip.
type level struct {
	now, held  float64       // and the last that had as many successes as it needed
	known      float64       // up to here it doubles; 0: no failure yet
	ceiling    float64       // below it, steps become smaller, and beyond larger; 0: there is none
	have, need int           // successes at this level
	hold       time.Duration // how long a level has to succeed, after growing in vain
	changedAt  int           // the last request before this level
	inVain     float64       // the last level that was grown to in vain
	wanted     bool          // somebody was refused a place: the level is in use
	used       time.Time     // when it last was in use, or a failure counted
}

func (l *level) starting() bool { return l.known == 0 }

// tried is the level that a failure speaks of. Without a level that is what was in flight.
func (w *Window) tried() float64 {
	if w.starting() {
		return min(w.now, float64(w.inFlight+1))
	}
	return w.now
}

// grow raises a level that has held.
func (w *Window) grow() {
	if w.now >= w.known && w.now >= w.inVain {
		w.hold = 0
	}
	if w.now >= w.known && w.now >= beyond*w.ceiling {
		w.delay, w.probation = w.delay/2, w.probation/2
	}
	if w.held, w.have = w.now, 0; !w.wanted {
		if w.works >= firstNeed {
			w.failing = time.Time{} // it has recovered as far as it is needed
		}
		return
	}
	w.wanted = false
	switch {
	case w.starting():
		// A loop without deadlines has time to find a limit, and lookups that wait share a request.
		if w.called && !w.patient {
			w.now, w.need = anyLevel, few
		} else {
			w.now = min(w.now*slowStart, anyLevel)
			w.need = places(w.now)
		}
	case w.now < w.known:
		w.now = min(2*w.now, w.known)
		if w.need = max(places(w.now), few); w.now == w.known {
			w.need = w.needed()
		}
	default:
		w.known, w.changedAt = w.held, w.last
		w.now *= w.step()
		w.need = w.needed()
	}
}

// step is the factor of the next level. Below the ceiling it goes half of the way there, in
// logarithms. Beyond, steps grow with the distance.
func (l *level) step() float64 {
	step := l.now / l.ceiling
	if step < 1 {
		step = math.Sqrt(1 / step)
	}
	return max(leastStep, min(step, mostStep))
}

// shrink goes below a level that failed: back, if that level was being tried, and
// otherwise to what the service accepted meanwhile. From time to time it begins a trial
// then, to learn whether the level was the reason.
func (w *Window) shrink() {
	if w.now > w.held {
		took := time.Duration(float64(w.need) / w.now * float64(w.rtt))
		w.inVain = w.now
		w.hold = min(2*max(w.hold, took), mostHold)
		w.goTo(w.held, w.now)
		w.recent.restart()
		return
	}
	accepted, count := w.recent.perSecond()*w.rtt.Seconds(), w.accepted+w.before
	lower := min(w.now, max(w.now/2, margin*accepted))
	switch {
	case w.share > 0 && w.credit < 1: // more failures than the last trial explains
		w.share, w.untested = 0, 0
		w.goTo(lower, lower)
	case w.untested <= 0 || time.Since(w.judged) > certain:
		w.tryBelow(min(w.now, max(accepted, lower/4)), count)
		w.back = lower
	default:
		w.goTo(lower, lower)
	}
	w.recent.restart()
}

// goTo begins a level.
func (w *Window) goTo(level, ceiling float64) {
	level = max(level, w.floor())
	w.now, w.known, w.held, w.have, w.changedAt = level, level, level, 0, w.last
	w.ceiling, w.need, w.wanted = ceiling, w.needed(), false
	if next := time.Now().Add(w.gap()); next.After(w.next) {
		w.next = next
	}
}

// floor is the lowest level: one at a time, or a pace.
func (w *Window) floor() float64 { return min(1, w.rtt.Seconds()/w.slowest.Seconds()) }

// needed is how many successes show that a level holds. On probation, low levels need fewer.
func (w *Window) needed() int {
	probation := w.within(w.probation)
	if w.now < w.ceiling {
		probation = int(w.now / w.ceiling * float64(probation))
	}
	return max(firstNeed, places(w.now), w.within(w.hold), probation)
}

// within is how many requests fit into a time.
func (w *Window) within(d time.Duration) int {
	return int(min(d.Seconds()/max(w.rtt, 1).Seconds()*w.now, math.MaxInt32))
}

// recent counts what the service accepted since the failure before the last one. Between
// two failures that is what it allows, whether it limits places or a rate.
type recent struct {
	accepted, before   int
	since, sinceBefore time.Time // the last failure, and the one before
}

func (r *recent) perSecond() float64 {
	return float64(r.accepted+r.before) / max(time.Since(r.sinceBefore).Seconds(), 1e-9)
}

func (r *recent) forget() { *r = recent{since: time.Now(), sinceBefore: time.Now()} }

func (r *recent) restart() {
	r.before, r.accepted = r.accepted, 0
	r.sinceBefore, r.since = r.since, time.Now()
}
