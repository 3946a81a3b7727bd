package flow

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A Window holds requests to one service. It is safe for concurrent use: share one among
// all calls that load the service together.
type Window struct {
	patient              bool
	slowest              time.Duration // between two requests
	patience             time.Duration // a request that takes less is not overdue
	firstDelay, maxDelay time.Duration // before a probe
	jitter               func(below time.Duration) time.Duration
	line                 chan struct{} // held by the one goroutine in Wait that asks for a place

	mu      sync.Mutex
	changed chan struct{} // closed with the next change; nil if nobody listens

	last     int       // number of the last request
	inFlight int       // requests
	waiting  int       // calls in Wait
	called   bool      // one of them asked for a place last, and not a loop
	heard    time.Time // the last result, or the first request of some
	next     time.Time // no request leaves before
	rtt      time.Duration

	level
	outage
	trial
	recent
	overtaken
	latency latency
}

// New returns a window. Patient is for requests whose failure costs little, such as
// lookups: a share of failures that no level lowers is borne however large it is, and one
// success ends an outage. Jitter returns a random duration of at least 0 and less than
// below; nil is rand.N.
func New(patient bool, jitter func(below time.Duration) time.Duration) *Window {
	if jitter == nil {
		jitter = rand.N[time.Duration]
	}
	w := &Window{patient: patient, slowest: slowest, patience: time.Second, firstDelay: firstDelay, maxDelay: maxDelay, jitter: jitter, line: make(chan struct{}, 1)}
	w.forget()
	return w
}

// NewPrompt returns a patient window for callers who cannot wait. Its lowest level is 20
// requests a second, or one at a time, and its probes wait for a tenth of a second at first and
// five seconds at most.
func NewPrompt(jitter func(below time.Duration) time.Duration) *Window {
	w := New(true, jitter)
	w.slowest, w.patience, w.firstDelay, w.maxDelay = 50*time.Millisecond, 250*time.Millisecond, 100*time.Millisecond, 5*time.Second
	return w
}

// forget starts anew, but for an outage and for failures in a row: those end with a success.
func (w *Window) forget() {
	w.level = level{now: first, held: first, need: few, changedAt: w.last}
	if !w.paused {
		w.outage = outage{cut: w.cut, why: w.why, row: w.row, rowFirst: w.rowFirst, rowSince: w.rowSince}
	}
	w.trial = trial{credit: maxCredit}
	w.recent.forget()
	w.latency.forget()
}

// A State says how a window sees its service.
type State struct {
	Level  float64   // requests per round trip
	Paused bool      // the service is down, and the next probe is awaited
	Probed bool      // a probe has failed in this pause
	Next   time.Time // when the next probe is due; zero without a pause
	Since  time.Time // begin of the outage, until a level has held again; zero: none
	Why    string    // the last failure that lowered the level or began the pause
}

// State returns the current state.
func (w *Window) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := State{Level: w.now, Paused: w.paused, Since: w.failing, Why: w.why}
	if w.paused {
		s.Probed, s.Next = w.probed, w.next
	}
	if places := w.latency.places; places > 0 {
		s.Level = min(s.Level, places)
	}
	return s
}

// Changed returns a channel that is closed when the window has changed: with the next result,
// and with Resume.
func (w *Window) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return w.changed
}

// Due returns when a place becomes free without a result, but no time before earliest. It is
// zero if only a result frees one. It is not a delay, because that would be zero as well for a
// place that has become free since Take refused it.
func (w *Window) Due(earliest time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	due := time.Now()
	if w.inFlight >= w.limit() {
		if due = w.frees(); due.IsZero() {
			return due
		}
	}
	return slices.MaxFunc([]time.Time{due, w.next, earliest}, time.Time.Compare)
}

// frees is when a place becomes free because no result has come; zero: not.
func (w *Window) frees() (at time.Time) {
	if w.paused {
		return at
	}
	if w.starting() && w.extra() < 2 {
		at = w.heard.Add(time.Second << w.extra())
	}
	if silent := w.quiet().Add(w.overdue()); w.latency.count > 0 && (at.IsZero() || silent.Before(at)) {
		at = silent
	}
	return at
}

// IsFree reports whether Take would succeed.
func (w *Window) IsFree() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.isFree()
}

func (w *Window) isFree() bool {
	free := time.Until(w.next) <= 0 && w.inFlight < w.limit()
	w.called = w.waiting > 0
	if !free && !w.paused && (w.row == 0 || w.inFlight >= places(w.now)) { // and not because of failures
		w.wanted, w.lacked, w.used = true, true, time.Now()
	}
	return free
}

// Take takes a place for one request and returns the number of the request, unless there is no
// place. The caller owes exactly one of Succeeded, Failed, Late, Answered and Ignored.
func (w *Window) Take() (request int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.isFree() {
		return 0, false
	}
	now := time.Now()
	if w.inFlight == 0 && w.last > 0 && now.Sub(w.heard) > memory || !w.starting() && !w.paused && now.Sub(w.used) > memory {
		w.forget()
	}
	if w.inFlight == 0 {
		if !w.latency.late || now.Sub(w.heard) > w.overdue() {
			w.latency.flying = now
		}
		w.heard = now
	}
	if w.mayTry() {
		w.next = now.Add(now.Sub(w.quiet()))
	} else if !w.starting() {
		// A timer that fires late is no reason to fall behind the pace.
		if now.Sub(w.next) > maxLate {
			w.next = now
		}
		w.next = w.next.Add(w.gap())
	}
	w.last++
	w.inFlight++
	w.latency.leaves(w.last, w.inFlight)
	return w.last, true
}

// gap is the time between two requests.
func (w *Window) gap() time.Duration {
	return min(time.Duration(float64(w.rtt)/w.now), w.slowest)
}

// limit is how many requests may be in flight.
func (w *Window) limit() int {
	limit := places(w.now)
	switch {
	case w.paused:
		return 1
	case w.mayTry():
		return w.inFlight + 1
	}
	if w.latency.places > 0 {
		limit = min(limit, places(w.latency.places))
	}
	limit = max(1, limit>>w.row)
	if w.starting() && w.latency.places == 0 { // a first request that hangs must not hold up all others
		limit <<= w.extra()
	}
	return limit
}

// extra is how many requests may leave beside the first ones, while none has a result: one
// more after a second, after two, after four, and so on.
func (w *Window) extra() int { return min(bits.Len64(uint64(time.Since(w.heard)/time.Second)), 2) }

func places(level float64) int { return int(math.Ceil(max(level, 1) - 1e-9)) }
