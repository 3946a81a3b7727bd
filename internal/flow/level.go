package flow

import (
	"math"
	"time"
)

const (
	lately    = 20                // results that the share of refusals is taken of
	forMean   = 100               // results
	tolerated = 0.08              // the share of two refusals in twenty, which lower nothing: 2 % Retry-After
	deepest   = 0.5               // times the level that was refused, at least
	margin    = 0.95              // times the ceiling, at most
	leastTime = 5 * time.Second   // until a level is back where it was refused
	leastMany = 100               // requests until then
	inUse     = 5 * time.Second   // since somebody waited
	memory    = 150 * time.Second // after which a level that is not in use says little
	slowest   = 5 * time.Second   // between two requests
	latest    = 2 * time.Millisecond
)

// A level is the congestion window of a service that refuses what is too much: so many requests
// leave in each round trip, evenly spread, and so many may be in flight. A refusal lowers it by the share
// that was refused lately. While it is in use it grows along a cubic, slowly around the level
// that was refused last.
type level struct {
	now     float64       // 0: no limit is known
	ceiling float64       // was refused last
	highest float64       // that was refused, since fewer in flight last showed that it was the load
	low     float64       // where growth began
	used    time.Duration // in use since then
	wanted  bool          // somebody has waited since grown
	usedAt  time.Time
	grown   time.Time
	set     time.Time
	next    time.Time // no request leaves before
	cut     int       // the last request that left before the level was set
	held    int       // requests of this level that were accepted

	share    float64 // of refusals, lately
	mean     float64 // share of refusals, over more results
	results  int     // counted up to forMean
	with     float64 // in flight, lately
	compared comparison
}

func (l *level) isKnown() bool { return l.now > 0 }

// leaves keeps the pace.
func (l *level) leaves(w *Window, now time.Time) {
	l.with += (float64(w.inFlight) - l.with) / lately
	if !l.isKnown() {
		return
	}
	// A timer that fires late is no reason to fall behind the pace.
	if now.Sub(l.next) > latest {
		l.next = now
	}
	l.next = l.next.Add(l.gap(w))
}

func (l *level) gap(w *Window) time.Duration {
	return min(time.Duration(float64(w.rtt)/l.now), slowest)
}

// counts counts a result, or a refusal.
func (l *level) counts(refused float64) {
	l.results = min(l.results+1, forMean)
	l.share += (refused - l.share) / lately
	l.mean += (refused - l.mean) / float64(l.results)
}

// accepts notes that the service has worked on a request.
func (l *level) accepts(w *Window, f *flight, now time.Time) {
	if f.number > l.cut {
		l.held++
	}
	l.counts(0)
	l.compared.counts(w, f, now, false)
	l.grow(w, now)
}

// refuses notes a refusal. Those that left before the level was lowered are known, and those in a row
// are one event: if nothing works, fewer in flight would change nothing.
func (l *level) refuses(w *Window, f *flight, now time.Time) {
	l.counts(1)
	l.grow(w, now)
	switch {
	case f.number <= l.cut, w.breaker.open, w.rtt == 0:
	case l.compared.running:
		l.compared.counts(w, f, now, true)
	case l.held == 0 && l.cut > 0:
	case l.compared.explains(l.share, now):
	case l.share < tolerated:
	default:
		l.lower(w, f, now)
	}
}

// isUsed reports whether the level has held somebody back lately.
func (l *level) isUsed(now time.Time) bool { return l.isKnown() && now.Sub(l.usedAt) < inUse }

// lower lowers a level that was refused. If it was lowered before and is refused far below, a comparison
// begins.
func (l *level) lower(w *Window, f *flight, now time.Time) {
	refused := l.now
	if !l.isUsed(now) { // what was in flight was refused, and not what might have been
		refused = max(float64(f.with), l.with)
		if l.isKnown() {
			refused = min(refused, l.now)
		}
	}
	l.highest = max(l.highest, refused)
	to := refused * max(deepest, 1-l.share)
	if again := l.isKnown() && refused < farBelow*l.highest; again {
		to = refused * (1 - l.share) * compareAt // below what it has accepted
		l.compared.begin(l, refused, now.Add(w.rtt))
	}
	l.setTo(w, now, to, refused)
}

// halve is for a service that is down again at once.
func (l *level) halve(w *Window, now time.Time) {
	refused := l.now
	if !l.isKnown() {
		refused = max(l.with, 1)
	}
	l.compared.running, l.compared.until = false, time.Time{}
	l.setTo(w, now, refused/2, refused)
}

func (l *level) setTo(w *Window, now time.Time, to, refused float64) {
	to = max(to, min(1, w.rtt.Seconds()/slowest.Seconds()))
	l.now, l.low, l.ceiling = to, to, max(refused, to/margin)
	l.used, l.held, l.cut, l.wanted = 0, 0, w.last, false
	l.set, l.grown = now, now
	if next := now.Add(l.gap(w)); next.After(l.next) {
		l.next = next
	}
}

// forget forgets the limit.
func (l *level) forget() {
	l.compared.running = false
	*l = level{share: l.share, mean: l.mean, results: l.results, with: l.with, cut: l.cut, compared: l.compared}
}

// grow raises a level that is in use, and forgets one that is not.
func (l *level) grow(w *Window, now time.Time) {
	if !l.isKnown() {
		return
	}
	if now.Sub(l.usedAt) > memory && now.Sub(l.set) > memory {
		l.forget()
		return
	}
	if l.wanted {
		l.used += min(now.Sub(l.grown), max(time.Second, l.gap(w)))
		l.usedAt = now
	}
	l.grown, l.wanted = now, false
	if !l.compared.running {
		until := max(leastTime, time.Duration(leastMany*float64(l.gap(w))))
		x := l.used.Seconds()/until.Seconds() - 1
		l.now = l.ceiling + (l.ceiling-l.low)*math.Pow(x, 3)
	}
}
