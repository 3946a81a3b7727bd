package flow

import (
	"math"
	"time"
)

const (
	minRTT     = time.Millisecond
	maxLate    = 2 * time.Millisecond
	slowest    = 5 * time.Second  // between two requests, without a pause
	firstNeed  = 10               // successes
	slowStart  = 4                // times the level
	leastStep  = 0.05             // share of the level
	maxNeed    = 20 * time.Second // of successes
	needLost   = 4                // times the length of an outage, if growing led to several
	mostLost   = 90 * time.Second
	stepLost   = 0.25              // the largest step then
	mostVain   = 8                 // of these outages count
	memory     = 150 * time.Second // without a request or a failure, after which a level says little
	maxCaution = 1 << 20
	margin     = 0.95 // of what the service accepted
	few        = 10   // successes between failures
)

// A level is how many requests leave in each round trip.
type level struct {
	now, held  float64 // and the last that had as many successes as it needed
	known      float64 // up to here it doubles; 0: no failure yet
	failedAt   float64 // the last level that was grown to in vain
	step       float64 // of the next growth
	have, need int     // successes at this level
	caution    int     // factor of need: growing in vain costs requests
	changedAt  int     // the last request before this level
	wanted     bool    // somebody was refused a place: the level is in use
}

func (l *level) starting() bool { return l.known == 0 }

// grow raises a level that has held.
func (w *Window) grow() {
	if w.now >= w.known {
		w.delay /= 2 // a next outage may be like the last one
	}
	if w.held, w.have = w.now, 0; !w.wanted {
		return
	}
	w.wanted = false
	switch {
	case w.starting(), w.caution <= 4 && time.Since(w.since) > memory:
		w.now *= slowStart
		w.need = places(w.now)
	case w.now < w.known:
		w.now = min(2*w.now, w.known)
		if w.need = max(places(w.now), w.trusted()); w.now == w.known {
			w.need = w.needed()
		}
	default:
		if w.held >= w.failedAt {
			w.caution = 1
		}
		w.known, w.changedAt = w.held, w.last
		w.now *= 1 + w.step
		if w.step = min(2*w.step, 1); w.vain > 1 {
			w.step = min(w.step, stepLost/w.care())
		}
		w.need, w.scout = w.needed(), -1
	}
}

// shrink goes below a level that failed: back, if that level was being tried, and
// otherwise to what the service accepted meanwhile. From time to time it begins a trial
// then, to learn whether the level was the reason.
func (w *Window) shrink() {
	if w.now > w.held {
		w.failedAt = w.now
		w.caution = min(2*w.caution, maxCaution)
		w.goTo(w.held, max(leastStep, w.step/4))
		w.recent.restart()
		return
	}
	accepted, count := w.recent.perSecond()*w.rtt.Seconds(), w.accepted+w.before
	least := w.now / 2
	if count < few {
		least = w.now / 4
	}
	lower := min(w.now, max(least, margin*accepted))
	step := max(leastStep, min(few/2/float64(max(1, count)), 1)) // the fewer, the further off lower may be
	switch {
	case w.share > 0 && w.credit < 1: // more failures than the last trial explains
		w.share, w.untested = 0, 0
		w.goTo(lower, step)
	case w.untested <= 0 || w.now <= w.safe || time.Since(w.judged) > certain:
		w.tryBelow(min(w.now, max(accepted, lower/4)), count)
		w.back, w.backStep = lower, step
	default:
		w.goTo(lower, step)
	}
	w.recent.restart()
}

// goTo begins a level, and step is that of its next growth.
func (w *Window) goTo(level, step float64) {
	level = max(level, w.floor())
	w.now, w.known, w.held, w.have, w.changedAt, w.scout = level, level, level, 0, w.last, 0
	w.step, w.need, w.wanted = step, w.needed(), false
	if next := time.Now().Add(w.gap()); next.After(w.next) {
		w.next = next
	}
}

// floor is the lowest level: one at a time, or a pace.
func (w *Window) floor() float64 { return min(1, w.rtt.Seconds()/w.slowest.Seconds()) }

// needed is how many successes show that a level holds.
func (w *Window) needed() int {
	hold := maxNeed
	if w.vain > 1 {
		hold = max(hold, time.Duration(w.care()*float64(min(needLost*w.down, mostLost))))
	}
	return max(min(firstNeed*w.caution, w.within(hold)), firstNeed, places(w.now))
}

// care grows with the outages in a row that growing led to. By that factor steps are smaller,
// and levels have to hold for longer.
func (w *Window) care() float64 { return float64(min(max(w.vain, 2), mostVain)) / 2 }

// within is how many requests fit into a time.
func (w *Window) within(d time.Duration) int {
	return int(min(d.Seconds()/max(w.rtt, minRTT).Seconds()*w.now, math.MaxInt32))
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

// Rests records that a request was refused and that nothing leaves for so long, because the
// service has said so. Most of that time does not count for what it accepts in a second. A
// part does, because a rate limiter may allow a burst after it.
func (w *Window) Rests(request int, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if request > w.rested {
		w.rested = w.last
		d = d * 3 / 4
		w.since, w.sinceBefore = w.since.Add(d), w.sinceBefore.Add(d)
	}
}

func (r *recent) forget() { *r = recent{since: time.Now(), sinceBefore: time.Now()} }

func (r *recent) restart() {
	r.before, r.accepted = r.accepted, 0
	r.sinceBefore, r.since = r.since, time.Now()
}
