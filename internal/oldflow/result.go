package flow

import (
	"math"
	"time"
)

// Ignored records a request that its caller ended after some time without a response, or that did not
// leave, if that is 0.
func (w *Window) Ignored(request int, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := untimed
	if w.latency.count > 0 && request > w.newest && time.Since(w.quiet())+2*w.typical() < took { // it waits behind those that have responses
		t = atLeast
	}
	if w.settled(request, took, t); took > 0 {
		w.reprobe(request)
	}
}

// Answered records a request that the service answered in a way that says nothing of the
// others, such as a refusal of one account. It counts for the level, and ends no outage.
func (w *Window) Answered(request int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled(request, 0, untimed)
	w.accepted++
	w.works++
	if w.reprobe(request); !w.paused && !w.testing && request > w.changedAt {
		if w.have++; w.have >= w.need {
			w.grow()
		}
	}
}

// reprobe sends the next probe soon if this one says nothing.
func (w *Window) reprobe(request int) {
	if w.paused && request > w.cut {
		w.pause(w.firstDelay)
	}
}

// Succeeded records a request that the service answered, and how long that took.
func (w *Window) Succeeded(request int, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.responds()
	w.settled(request, took, timed)
	if took = max(took, 1); w.rtt == 0 {
		w.rtt = took
	}
	w.rtt += (min(took, 2*w.rtt) - w.rtt) / 32 // a single one that hung tells little
	w.latency.longest = max(w.latency.longest, took)
	if w.wasAlone(request) {
		w.latency.endsAlone(took)
	}
	w.accepted++
	w.works++
	w.overtaken.by(request, w.last)
	if w.row > 0 && request < w.rowFirst || w.paused && request <= w.cut {
		return // it tells how the service was before it failed
	}
	w.row = 0
	if w.paused {
		w.resume()
	}
	switch {
	case request <= w.changedAt: // sent at another level
	case w.testing:
		w.passed++
		w.judge()
	default:
		if w.have++; w.now >= w.known && w.have >= firstNeed {
			w.failing = time.Time{} // the service has recovered
		}
		if w.have >= w.need {
			w.grow()
		}
	}
}

// wasAlone reports whether no other request was in flight with one that has ended.
func (w *Window) wasAlone(request int) bool {
	return w.inFlight == 0 && request == w.last && request == w.latency.lone.request
}

// responds notes that the service works.
func (w *Window) responds() {
	if w.latency.count > 0 && w.isSilent() {
		w.next = time.Time{} // it was that of the next try
	}
	w.latency.late, w.latency.worked = false, time.Now()
}

// Late records a request that had no response by its caller's deadline. That says something of
// the service if the request took much longer than usual, or as long as usual while there was no
// response to any other for much longer. Then it is a failure, and Late reports that.
func (w *Window) Late(request int, took time.Duration, why string) (failed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.latency.late = true
	failed = took >= w.overdue() || took >= w.typical() && (w.paused || w.isSilent())
	if failed {
		w.settled(request, took, hung)
		w.fails(request, true, why)
	} else {
		w.settled(request, took, atLeast)
		w.reprobe(request)
		if w.wasAlone(request) && w.latency.places > 0 { // the next one, which waits for it, needs more time
			w.latency.usual = max(w.latency.usual, math.Log(took.Seconds())+math.Ln2)
		}
	}
	return failed
}

// Arrived records the response to a request that counts as a failure, because it took too long. So
// the service works, and is slower than it was.
func (w *Window) Arrived(took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.responds()
	w.latency.usual = max(w.latency.usual, math.Log(took.Seconds()))
	if w.paused {
		w.resume()
	}
	w.announce()
}

// Failed records a request that failed in a way that the next one may meet, too, and how long that
// took.
func (w *Window) Failed(request int, took time.Duration, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, isHung := untimed, took >= w.overdue()
	if isHung {
		t = hung
	}
	w.settled(request, took, t)
	w.fails(request, isHung, why)
}

// fails draws the conclusions of a failure. IsHung: the request had no response for much longer than
// usual.
func (w *Window) fails(request int, isHung bool, why string) {
	if isHung && w.isLost(request) {
		return
	}
	if w.row == 0 {
		w.rowSince = time.Now()
	}
	if w.row == 0 || request < w.rowFirst {
		w.rowFirst = request
	}
	w.row++
	known := request <= w.cut // it was sent before the last failure was known
	untried := w.rtt == 0 && !w.paused
	if known && !untried && !(w.testing && request > w.changedAt) {
		w.doubt()
		return
	}
	w.doubted = 0
	stopped := isHung && w.isSilent()
	down := w.isDown(stopped)
	switch {
	case down:
	case w.rtt == 0: // the first request of all says little: try again
	case stopped: // the level is not the reason, and requests leave one at a time anyway
		if w.row == 1 {
			w.remember()
		}
		w.used, w.why = time.Now(), why
		return
	case w.testing:
		w.failed++
		down = w.judge()
	case w.credit >= 1 && w.share > 0 && (w.now > w.held || w.untested > 0): // borne
		w.credit--
		w.row--
		w.used = time.Now()
		return
	case w.credit >= 1 && w.isIdle(): // chance, unless more of those in flight fail
		w.credit--
		w.doubted, w.others = w.tried(), 1+w.inFlight/20
		if w.row == 1 {
			w.sound = w.doubted
		}
		w.cut = w.last
		return
	default:
		w.now = w.tried()
		w.shrink()
	}
	w.used = time.Now()
	if w.row == 1 { // the next failures in this row tell nothing of the level
		w.remember()
	}
	w.why, w.cut = why, w.last
	if down {
		w.begin()
	}
}

// doubt looks at a failure that a borne one belongs to: if too many of those that were in flight
// then fail, it was no chance.
func (w *Window) doubt() {
	if w.doubted == 0 || w.paused || w.testing {
		return
	}
	if w.others--; w.others < 0 {
		w.now, w.doubted = min(w.now, w.doubted), 0
		w.shrink()
		w.remember()
		w.used, w.cut = time.Now(), w.last
	}
}

// remember notes the level to which failures in a row have led.
func (w *Window) remember() {
	if w.sound = w.now; w.testing {
		w.sound = w.back
	}
}

// settled is what all results have in common.
func (w *Window) settled(request int, took time.Duration, t timing) {
	w.inFlight--
	w.heard = time.Now()
	w.untested--
	w.bear()
	if s, complete := w.latency.ended(request, took, t); complete {
		w.latency.measure(s, w.paused)
	}
	if request == w.probe {
		w.probe = 0
	}
	w.announce()
}

func (w *Window) announce() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}
