package flow

import (
	"math"
	"time"
)

const (
	inARow               = 5 // failures that are borne in a row
	firstDelay, maxDelay = time.Second, 2 * time.Minute
	leastTrust, maxTrust = 4, 64
	mostProof            = 10
	belowLimit           = 0.85 // of a level that growing from led to an outage
)

// An outage holds all requests back but for one probe at a time.
type outage struct {
	paused  bool
	delay   time.Duration // before the last probe
	failing time.Time     // its begin; zero once the service has recovered
	why     string

	row, rowFirst int     // failures in a row, and the first request of these
	sound         float64 // the level after the first of them
	grown         bool    // the level before had not held yet
	cut           int     // the last request that was sent when a failure became known

	trust int // successes that a level needs after an outage
	proof int // successes since the outage

	began time.Time     // begin of the last outage; zero: there was none
	down  time.Duration // its length
	ended time.Duration // the delay before the probe that ended it
	works int           // what the service accepted since
	vain  int           // outages in a row that growing led to
}

// isDown reports whether the failure that came last is an outage.
func (w *Window) isDown() bool {
	switch {
	case w.paused: // a probe
		return true
	case w.rtt == 0: // nothing has ever worked
		return w.row > 1
	case w.row > inARow && (!w.testing || w.passed == 0):
		return !w.isLikely(w.row)
	case w.now > 1 || w.share > 0 && w.failing.IsZero():
		return false
	case w.patient: // a large share that fails at random has such rows, too
		return w.row > 3 && (!w.testing || w.passed == 0)
	}
	return w.row > 2 || !w.failing.IsZero() // one at a time fails
}

// begin begins an outage, or prolongs it.
func (w *Window) begin() {
	if w.testing = false; !w.paused && !w.starting() {
		w.fallBack()
	}
	if !w.patient {
		w.credit = 0
	}
	w.trust, w.proof = min(2*w.trust, maxTrust), 0
	w.delay = min(max(firstDelay, 2*w.delay), w.maxDelay)
	w.pause(w.delay)
}

// fallBack chooses the level to return to. One outage says nothing of the load. If another
// follows, what the service accepted since the first one began, its pause included, is what
// it allows in the long run: all of its limit if that counts by the minute, and less if it
// bans who exceeds it. So the new level is between that and the level before.
func (w *Window) fallBack() {
	now := time.Now()
	w.known = w.sound
	if !w.began.IsZero() {
		cycle := margin * float64(w.works) / now.Sub(w.began).Seconds() * w.rtt.Seconds()
		if 1.5*cycle < w.known {
			lower := math.Sqrt(cycle * w.known)
			if w.works < firstNeed && !w.patient { // a few successes may have been all by chance
				lower = max(lower, w.known/2)
			}
			w.known = max(lower, w.floor())
		}
	}
	if w.vain++; !w.grown {
		w.vain = 0
	}
	switch {
	case w.works < firstNeed: // it hardly worked at all: no level was the reason
		w.vain, w.step, w.caution = 0, 1, 1
	case w.vain > 0 && !w.began.IsZero() && now.Sub(w.began) > 2*w.down: // it worked for longer than it was down
		w.known, w.step = max(w.known, belowLimit*w.sound), leastStep
		w.caution = min(2*w.caution, maxCaution)
	}
	if w.vain > 0 { // earlier probes would only prolong a ban
		w.delay = max(w.delay, w.ended/2)
	}
	w.began, w.works = now, 0
}

func (w *Window) pause(delay time.Duration) {
	now := time.Now()
	if w.failing.IsZero() {
		w.failing = now
	}
	w.paused, w.next = true, now.Add(delay/2+w.jitter(delay/2))
}

// resume goes on after a probe that succeeded, one request at a time at first.
func (w *Window) resume() {
	w.paused, w.next, w.ended, w.down = false, time.Time{}, w.delay, time.Since(w.failing)
	w.recent.forget() // a pause says nothing of what is accepted
	w.now, w.have, w.need = 1, 0, w.trusted()
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

// checkRecovery ends the outage for good after enough successes without another one.
func (w *Window) checkRecovery() {
	if w.proof++; w.now >= w.known && w.proof >= min(w.trust, mostProof) {
		w.trust, w.failing = 1, time.Time{}
	}
}

// trusted is how many successes a level needs after an outage. A slow one cannot wait for
// many.
func (w *Window) trusted() int {
	return min(w.trust, max(leastTrust, w.within(30*time.Second)))
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
