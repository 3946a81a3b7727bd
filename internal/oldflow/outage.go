package flow

import (
	"math"
	"time"
)

const (
	inARow               = 5 // failures that are borne in a row
	firstDelay, maxDelay = time.Second, 2 * time.Minute
	leastProbation       = 16 // the part of the delay that ended the outage
)

// An outage holds all requests back but for one probe at a time.
type outage struct {
	paused  bool
	probed  bool          // a probe has failed since
	probe   int           // the one that has left; 0: none
	delay   time.Duration // before the last probe
	failing time.Time     // its begin; zero once the service has recovered
	why     string

	row, rowFirst int // failures in a row, and the first request of these
	rowSince      time.Time
	sound         float64 // the level after the first of them
	cut           int     // the last request that was sent when a failure became known

	began, resumed time.Time     // the last outage; zero: there was none
	lacked         bool          // somebody was refused a place since it began
	works          int           // what the service accepted since it began
	fell           float64       // the sound level then
	probation      time.Duration // how long levels have to succeed after it
}

// isDown reports whether the failure that came last is an outage. A service that has stopped gets
// one request at a time.
func (w *Window) isDown(stopped bool) bool {
	switch {
	case w.paused: // a probe
		return true
	case w.rtt == 0: // nothing has ever worked
		return w.row > 1
	case w.row > inARow:
		return !w.isLikely(w.row)
	case w.tried() > 1 && !stopped || w.share > 0 && w.failing.IsZero():
		return false
	case w.patient: // a large share that fails at random has such rows, too
		return w.row > 3 && (!w.testing || w.passed == 0)
	}
	return w.row > 2 || !w.failing.IsZero() // one at a time fails
}

// begin begins an outage, or prolongs it.
func (w *Window) begin() {
	w.testing, w.probed = false, w.paused
	switch {
	case w.paused:
		w.delay *= 2
	case w.rtt > 0:
		w.fallBack()
	}
	w.delay = min(max(w.firstDelay, w.delay), w.maxDelay)
	w.pause(w.delay)
}

// fallBack chooses the level to return to. One outage says nothing of the load, nor does another
// while nothing waits for a place. Otherwise, what the service accepted since the first one began,
// its pause included, is what it allows in the long run: all of its limit if that counts by the
// minute, and less if it bans who exceeds it. So the new level is between that and the one before.
//
// A level that works for as long as the service did before this outage is not the reason for
// the next. If this outage began far lower than the one before, no level was the reason.
func (w *Window) fallBack() {
	now := time.Now()
	again := !w.began.IsZero() && w.lacked
	if again || !w.starting() {
		w.known, w.ceiling = w.sound, w.sound
	}
	if again {
		cycle := margin * float64(w.works) / now.Sub(w.began).Seconds() * w.rtt.Seconds()
		lower := math.Sqrt(min(cycle, w.sound) * w.sound)
		if w.works < firstNeed { // a few successes may have been all by chance
			lower = max(lower, w.sound/2)
		}
		w.known = max(lower, w.floor())
	}
	if w.works < firstNeed { // it hardly worked at all: no level was the reason
		w.ceiling = 0
	}
	if w.probation = 0; w.fell > 0 && w.sound > w.fell/beyond {
		w.probation = now.Sub(w.resumed)
	}
	w.began, w.works, w.fell, w.lacked = now, 0, w.sound, false
}

func (w *Window) pause(delay time.Duration) {
	now := time.Now()
	if w.failing.IsZero() {
		w.failing = w.rowSince
	}
	w.paused, w.next = true, now.Add(delay/2+w.jitter(delay/2))
}

// resume goes on after a probe that succeeded, one request at a time at first.
func (w *Window) resume() {
	w.paused, w.next, w.resumed = false, time.Time{}, time.Now()
	w.used = w.resumed
	w.hold, w.untested = 0, 0
	w.probation = min(max(w.probation, w.delay/leastProbation), w.delay)
	w.recent.forget() // a pause says nothing of what is accepted
	w.now, w.have, w.need = 1, 0, few
	if w.patient {
		w.failing, w.need = time.Time{}, 1
	}
	if !w.starting() {
		if w.now = min(w.known, 1); w.now == w.known {
			w.need = w.needed()
		}
		w.next = time.Now().Add(w.gap())
	}
	w.held = w.now
}

// Resume ends an outage that was none: what failed was no service, but one account.
func (w *Window) Resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused {
		w.paused, w.row, w.next, w.delay = false, 0, time.Time{}, 0
		w.failing, w.began = time.Time{}, time.Time{}
		w.announce()
	}
}
