package flow

import (
	"math"
	"time"
)

const (
	leastTrial, mostTrial = 15, 150     // results without a failure
	failedTrial           = 5           // failures that end a trial
	mostBorne             = 0.2         // a larger share of failures is not borne
	unexplained           = 0.02        // the share that is borne of a level that is not in use
	deepest               = 16          // times below the level that failed
	patience              = 8           // times the results of a trial until the next
	certain               = time.Minute // for so long, a finding is not tested again at a low level
	maxCredit             = 6
)

// A trial tells load from chance. Below its capacity a service fails nothing, whereas a
// share that fails at random does not care how much is in flight. So a trial goes to two
// thirds of what was accepted, and waits for five failures, or for many successes.
type trial struct {
	testing        bool
	top, back      float64 // the level if it was not the load, and if it was
	deeper         int     // trials in a row that failed too much
	passed, failed int     // results
	enough         int     // of them without a failure

	// What trials have found:
	share    float64 // of failures that are not the load's
	credit   float64 // failures that are borne: those of that share, or of an idle level
	judged   time.Time
	untested int // results until the next trial may begin

	doubted float64 // the level of a failure that was borne; 0: none was
	others  int     // more failures than these, of those in flight then, are no chance
}

// tryBelow begins a trial.
func (w *Window) tryBelow(accepted float64, count int) {
	if w.deeper == 0 {
		w.top = min(w.now, 1.25*accepted+1)
	}
	w.testing, w.passed, w.failed = true, 0, 0
	w.goTo(accepted*2/3, accepted*2/3)
	w.enough = min(max(leastTrial, count*3/2), mostTrial)
}

// judge ends a trial as soon as it is clear. It reports whether the service is down.
func (w *Window) judge() (down bool) {
	n := w.passed + w.failed
	share := float64(w.failed) / float64(n)
	switch tooMany := share > mostBorne; {
	case w.failed < failedTrial && n < w.enough*(w.failed+1):
		return false // not clear yet
	case w.failed < failedTrial: // it was the load
		w.share, w.credit = 0, 0
		w.goTo(w.back, w.back)
	case tooMany && w.now*deepest > w.top && w.now > w.floor(): // it may still be the load: the next failure goes deeper
		w.deeper++
		w.testing, w.untested = false, 0
		w.goTo(w.now, w.now)
		return false
	case tooMany && (!w.patient || w.passed == 0):
		down = true
	default: // it was not the load
		if w.share > 0 {
			share = (share + w.share) / 2
		}
		w.share, w.credit, w.hold, w.probation = share, maxCredit, 0, 0
		w.goTo(w.top, 0)
		w.row = 0
	}
	w.testing, w.deeper, w.judged, w.untested = false, 0, time.Now(), patience*n
	w.recent.forget()
	return down
}

// isLikely reports whether the share explains so many failures in a row.
func (t *trial) isLikely(row int) bool { return math.Pow(t.share, float64(row)) > 0.01 }

// isIdle reports whether the level is not in use, so that a failure is hardly the load's. While
// starting, calls wait for the first responses and not for a place, and one failure of a loop is
// borne, too.
func (w *Window) isIdle() bool {
	if w.starting() {
		return w.called || !w.wanted || w.credit == maxCredit
	}
	return !w.wanted && w.now <= w.held
}

// bear adds to the credit what each result allows: a little more than the share that was
// found, but never all. Only a patient window bears more than mostBorne.
func (w *Window) bear() {
	due := min(1.5*w.share, (1+w.share)/2)
	if !w.patient {
		due = min(due, mostBorne)
	}
	if w.isIdle() {
		due = max(due, unexplained)
	}
	w.credit = min(w.credit+due, maxCredit)
}

// Overtaken knows which requests left before several others that have succeeded.
type overtaken struct {
	newest    int // request that has succeeded
	upTo      int // the last that has left before several others
	upToNext  int // the last that will be, after a few more successes
	succeeded int // that left later
	lost      int // the last that hung nevertheless
}

// by notes that a request has succeeded. The last one is the last that has left.
func (o *overtaken) by(request, last int) {
	o.newest = max(o.newest, request)
	if request <= o.upToNext {
		return
	}
	if o.succeeded++; o.succeeded >= few {
		o.upTo, o.upToNext, o.succeeded = o.upToNext, last, 0
	}
}

// isLost reports whether a request that hung says nothing of the level, because others that left
// later have succeeded. All that left in the same gap of the service count as one. Many such gaps
// are no chance.
func (w *Window) isLost(request int) bool {
	sameGap := request == w.lost+1
	if request > w.upTo || w.credit < 1 && !sameGap {
		return false
	}
	if w.lost = request; !sameGap {
		w.credit--
	}
	return true
}
