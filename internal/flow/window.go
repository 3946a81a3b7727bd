package flow

import (
	"context"
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
	firstDelay, maxDelay time.Duration // before a probe
	jitter               func(below time.Duration) time.Duration
	line                 chan struct{} // held by the one goroutine in Wait that asks for a place

	mu      sync.Mutex
	changed chan struct{} // closed with the next change; nil if nobody listens

	last     int       // number of the last request
	rested   int       // the last request before the service asked for a pause
	inFlight int       // requests
	heard    time.Time // the last result, or the first request of some
	next     time.Time // no request leaves before
	rtt      time.Duration
	scout    int // the one request that tries a new level; 0: none, below 0: not sent yet

	level
	outage
	trial
	recent
}

// New returns a window. Patient is for requests whose failure costs little, such as
// lookups: a share of failures that no level lowers is borne however large it is, and one
// success ends an outage. Jitter returns a random duration of at least 0 and less than
// below; nil is rand.N.
func New(patient bool, jitter func(below time.Duration) time.Duration) *Window {
	if jitter == nil {
		jitter = rand.N[time.Duration]
	}
	w := &Window{patient: patient, slowest: slowest, firstDelay: firstDelay, maxDelay: maxDelay, jitter: jitter, line: make(chan struct{}, 1)}
	w.forget()
	return w
}

// NewPrompt returns a patient window for callers who cannot wait. Its lowest level is 20
// requests a second, or one at a time, and its probes wait for a tenth of a second at first and
// five seconds at most.
func NewPrompt(jitter func(below time.Duration) time.Duration) *Window {
	w := New(true, jitter)
	w.slowest, w.firstDelay, w.maxDelay = 50*time.Millisecond, 100*time.Millisecond, 5*time.Second
	return w
}

// forget starts anew, but for an outage: that ends with a success.
func (w *Window) forget() {
	w.scout = 0
	w.level = level{now: 1, held: 1, need: 1, changedAt: w.last}
	if !w.paused {
		w.outage = outage{cut: w.cut, why: w.why}
	}
	w.trial = trial{}
	w.recent.forget()
}

// A State says how a window sees its service.
type State struct {
	Level  float64   // requests per round trip
	Paused bool      // the service is down, and the next probe is awaited
	Next   time.Time // when the next probe is due; zero without a pause
	Since  time.Time // begin of the outage, until a level has held again; zero: none
	Why    string    // the last failure that lowered the level or began the pause

	RoundTrip time.Duration // of requests that succeeded; 0: none did
}

// State returns the current state.
func (w *Window) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := State{Level: w.now, Paused: w.paused, Since: w.failing, Why: w.why, RoundTrip: w.rtt}
	if w.paused {
		s.Next = w.next
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
	switch {
	case w.inFlight < w.limit():
	case w.starting() && !w.paused:
		due = w.heard.Add(time.Second << w.extra())
	default:
		return time.Time{}
	}
	return slices.MaxFunc([]time.Time{due, w.next, earliest}, time.Time.Compare)
}

// IsFree reports whether Take would succeed.
func (w *Window) IsFree() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.isFree()
}

func (w *Window) isFree() bool {
	free := time.Until(w.next) <= 0 && w.inFlight < w.limit()
	w.wanted = w.wanted || !free
	return free
}

// Take takes a place for one request and returns the number of the request, unless there
// is no place. The caller owes exactly one of Succeeded, Failed, Answered and Ignored.
func (w *Window) Take() (request int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.isFree() {
		return 0, false
	}
	now := time.Now()
	if w.inFlight == 0 {
		if w.last > 0 && now.Sub(w.heard) > memory {
			w.forget()
		}
		w.heard = now
	}
	if !w.starting() {
		// A timer that fires late is no reason to fall behind the pace.
		if now.Sub(w.next) > maxLate {
			w.next = now
		}
		w.next = w.next.Add(w.gap())
	}
	w.last++
	if w.inFlight++; w.scout < 0 && w.inFlight > places(w.held) {
		w.scout = w.last
	}
	return w.last, true
}

// Wait waits for a place, in the order of the calls. It fails with a *Pause at once, and
// as soon as the window pauses, because a probe can be minutes away; and with the
// context's error.
func (w *Window) Wait(ctx context.Context) (request int, err error) {
	select {
	case w.line <- struct{}{}:
		defer func() { <-w.line }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	for {
		changed := w.Changed()
		if request, ok := w.Take(); ok {
			return request, nil
		}
		if err := w.Recheck(0); err != nil {
			return 0, err
		}
		var due <-chan time.Time
		if at := w.Due(time.Time{}); !at.IsZero() {
			due = time.After(time.Until(at))
		}
		select {
		case <-changed:
		case <-due:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// Recheck returns a *Pause if an outage has begun since the request took its place. A
// request that has waited for something else meanwhile, such as a rate limiter, is not
// sent then, and is given back with Ignored.
func (w *Window) Recheck(request int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.paused || request > w.cut {
		return nil
	}
	left := time.Until(w.next)
	if left <= 0 { // a probe is in flight
		left = w.firstDelay
	}
	return &Pause{Left: left, Why: w.why}
}

// A Pause is the error of a request that found the service down.
type Pause struct {
	Left time.Duration // until the next probe
	Why  string        // the last failure
}

func (*Pause) Error() string { return "the service kept failing, the next probe is awaited" }

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
	case w.scout > 0:
		limit = places(w.held)
	}
	limit = max(1, limit>>w.row)
	if w.starting() { // a first request that hangs must not hold up all others
		limit += w.extra()
	}
	return limit
}

// extra is how many requests may leave beside the first ones, while none has a result: one
// more after a second, after two, after four, and so on.
func (w *Window) extra() int { return bits.Len64(uint64(time.Since(w.heard) / time.Second)) }

func places(level float64) int { return int(math.Ceil(max(level, 1) - 1e-9)) }

// Ignored records a request that did not leave, or that its caller ended.
func (w *Window) Ignored(request int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled(request)
	w.reprobe(request)
}

// Answered records a request that the service answered in a way that says nothing of the
// others, such as a refusal of one account. It counts for the level, and ends no outage.
func (w *Window) Answered(request int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled(request)
	w.accepted++
	w.works++
	if w.reprobe(request); !w.paused && !w.testing && request > w.changedAt && w.scout <= 0 {
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
	w.settled(request)
	if took = max(took, minRTT); w.rtt == 0 {
		w.rtt = took
	}
	w.rtt += (min(took, 2*w.rtt) - w.rtt) / 32 // a single one that hung tells little
	w.accepted++
	w.works++
	if w.row > 0 && request < w.rowFirst || w.paused && request <= w.cut {
		return // it tells how the service was before it failed
	}
	w.row = 0
	if w.paused {
		w.resume()
	}
	switch {
	case request <= w.changedAt || w.scout > 0: // sent at another level
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

// Failed records a request that failed in a way that the next one may meet, too.
func (w *Window) Failed(request int, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled(request)
	if w.row == 0 || request < w.rowFirst {
		w.rowFirst = request
	}
	w.row++
	known := request <= w.cut // it was sent before the last failure was known
	untried := w.rtt == 0 && !w.paused
	if known && !untried && !(w.testing && request > w.changedAt) {
		return
	}
	down := w.isDown()
	switch {
	case down:
	case w.rtt == 0: // the first request of all says little: try again
	case w.testing:
		w.failed++
		down = w.judge()
	case w.credit >= 1 && (w.now > w.held || w.untested > 0): // borne
		w.credit--
		w.row--
		return
	default:
		w.shrink()
	}
	if w.row == 1 { // the next failures in this row tell nothing of the level
		if w.sound = w.now; w.testing {
			w.sound = w.back
		}
	}
	w.why, w.cut = why, w.last
	if down {
		w.begin()
	}
}

// settled is what all results have in common.
func (w *Window) settled(request int) {
	w.inFlight--
	w.heard = time.Now()
	w.untested--
	w.bear()
	if request == w.scout {
		w.scout, w.have, w.changedAt = 0, 0, w.last
	}
	w.announce()
}

func (w *Window) announce() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}
