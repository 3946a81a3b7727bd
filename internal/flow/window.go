package flow

import (
	"context"
	"errors"
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
	rested   int       // the last request before the service asked for a pause
	inFlight int       // requests
	waiting  int       // calls in Wait
	called   bool      // one of them asked for a place last, and not a loop
	heard    time.Time // the last result, or the first request of some
	next     time.Time // no request leaves before
	rtt      time.Duration
	scout    int // the one request that tries a new level; 0: none, below 0: not sent yet

	level
	outage
	trial
	recent
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

// forget starts anew, but for an outage: that ends with a success.
func (w *Window) forget() {
	w.scout = 0
	w.level = level{now: first, held: first, need: few, changedAt: w.last}
	if !w.paused {
		w.outage = outage{cut: w.cut, why: w.why}
	}
	w.trial = trial{credit: maxCredit}
	w.recent.forget()
	w.latency.forget()
}

// A State says how a window sees its service.
type State struct {
	Level  float64   // requests per round trip
	Paused bool      // the service is down, and the next probe is awaited
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
		s.Next = w.next
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
	switch {
	case w.inFlight < w.limit():
	case w.starting() && !w.paused && w.extra() < 2:
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
	w.called = w.waiting > 0
	if !free && !w.paused && (w.row == 0 || w.inFlight >= places(w.now)) { // and not because of failures
		w.wanted, w.lacked, w.used = true, true, time.Now()
	}
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
	if w.inFlight == 0 && w.last > 0 && now.Sub(w.heard) > memory || !w.starting() && !w.paused && now.Sub(w.used) > memory {
		w.forget()
	}
	if w.inFlight == 0 {
		if !w.latency.late || now.Sub(w.heard) > w.overdue() {
			w.latency.flying = now
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
	w.latency.leaves(w.last, w.inFlight)
	return w.last, true
}

// Wait waits for a place, in the order of the calls. It fails with a *Pause at once, and
// as soon as the window pauses, because a probe can be minutes away; with ErrTooLate, as soon as
// the deadline of the context leaves too little time for a response; and with the context's
// error. A request that finds a place at once has it, whatever its deadline is. Own is the time
// that it will spend in this process afterwards.
func (w *Window) Wait(ctx context.Context, own time.Duration) (request int, err error) {
	waited, isNext := false, false
	w.waits(1)
	defer w.waits(-1)
	select {
	case w.line <- struct{}{}:
		isNext = true
	default:
	}
	for !isNext {
		if isNext, err = w.await(ctx, own, w.line, nil, time.Time{}); err != nil {
			return 0, err
		}
		waited = true
	}
	defer func() { <-w.line }()
	for ; ; waited = true {
		if left, ok := w.timeLeft(ctx, own); waited && ok && left <= 0 {
			return 0, ErrTooLate
		}
		changed := w.Changed()
		if request, ok := w.Take(); ok {
			return request, nil
		}
		if err := w.Recheck(0); err != nil {
			return 0, err
		}
		if _, err := w.await(ctx, own, nil, changed, w.Due(time.Time{})); err != nil {
			return 0, err
		}
	}
}

func (w *Window) waits(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting += n
}

// await waits for a place in the line, for a change, or for a time.
func (w *Window) await(ctx context.Context, own time.Duration, line chan<- struct{}, changed <-chan struct{}, due time.Time) (isNext bool, err error) {
	var late, free <-chan time.Time
	if left, ok := w.timeLeft(ctx, own); ok {
		if left <= 0 {
			return false, ErrTooLate
		}
		late = time.After(left)
	}
	if !due.IsZero() {
		left := time.Until(due)
		if left <= 0 {
			return false, nil
		}
		free = time.After(left)
	}
	select {
	case line <- struct{}{}:
		return true, nil
	case <-changed:
	case <-free:
	case <-late:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	return false, nil
}

// ErrTooLate is the error of a request that would hardly have a response by its deadline.
var ErrTooLate = errors.New("no time is left for a response")

// timeLeft is how long a request may still wait for its place.
func (w *Window) timeLeft(ctx context.Context, own time.Duration) (left time.Duration, limited bool) {
	deadline, ok := ctx.Deadline()
	usual := w.Usual()
	return time.Until(deadline) - usual - own, ok && usual > 0
}

// TooLate reports whether a request that has waited for so long, be it for its place or for
// something else, would hardly have a response by its deadline.
func (w *Window) TooLate(deadline time.Time, waited time.Duration) bool {
	usual := w.Usual()
	return waited > usual/instantly && time.Until(deadline) < usual
}

// Usual is the time within which most responses come; 0: it is not known.
func (w *Window) Usual() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.usual()
}

// Recheck returns a *Pause if an outage has begun since the request took its place, or if another
// probe has left meanwhile. A request that has waited for something else, such as a rate limiter,
// is not sent then, and is given back with Ignored. Otherwise it leaves.
func (w *Window) Recheck(request int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.recheck(request)
}

func (w *Window) recheck(request int) error {
	if !w.paused {
		return nil
	}
	if request > w.cut && (w.probe == 0 || w.probe == request) {
		w.probe = request
		return nil
	}
	left := time.Until(w.next)
	if left <= 0 { // a probe is in flight
		left = w.firstDelay
	}
	return &Pause{Left: left, Why: w.why}
}

// Yield gives the place of a request that has not left to others, if there is a pause: they would
// wait for it as for a probe. It reports whether it did.
func (w *Window) Yield(request int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.paused || w.probe == request {
		return false
	}
	w.settled(request, 0, untimed)
	return true
}

// Return takes a place for a request that has yielded its own and leaves now. It waits no more: it
// has waited for all else. In a pause it is the probe, if one is due and no other has left.
func (w *Window) Return() (request int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	request = w.last + 1
	if w.paused && time.Until(w.next) > 0 {
		request = 0
	}
	if err := w.recheck(request); err != nil {
		return 0, err
	}
	w.last++
	w.inFlight++
	w.latency.leaves(w.last, w.inFlight)
	return w.last, nil
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
	case w.paused, w.latency.count > 0 && w.inFlight > 0 && w.isSilent():
		return 1
	case w.scout > 0:
		limit = places(w.held)
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

// Ignored records a request that its caller ended after some time, or that did not leave, if that is 0.
func (w *Window) Ignored(request int, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled(request, 0, untimed)
	if took > 0 {
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
	w.settled(request, took, timed)
	if took = max(took, 1); w.rtt == 0 {
		w.rtt = took
	}
	w.rtt += (min(took, 2*w.rtt) - w.rtt) / 32 // a single one that hung tells little
	w.latency.late, w.latency.worked = false, time.Now()
	w.latency.longest = max(w.latency.longest, took)
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

// Late records a request that had no response by its caller's deadline. That says something of
// the service if the request took much longer than usual, or as long as usual while there was no
// response to any other for much longer. Then it is a failure, and Late reports that.
func (w *Window) Late(request int, took time.Duration, why string) (failed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.latency.late = true
	failed = took >= w.overdue() || took >= w.typical() && (w.paused || w.isSilent())
	if failed {
		w.settled(request, 0, untimed)
		w.fails(request, why)
	} else {
		w.settled(request, took, atLeast)
		w.reprobe(request)
	}
	return failed
}

// Arrived records the response to a request that counts as a failure, because it took too long. So
// the service works, and is slower than it was.
func (w *Window) Arrived(took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.latency.late, w.latency.worked = false, time.Now()
	w.latency.usual = max(w.latency.usual, math.Log(took.Seconds()))
	if w.paused {
		w.resume()
	}
	w.announce()
}

// Overdue is a time after which no response comes from a service that works; 0: it is not known.
func (w *Window) Overdue() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.latency.count == 0 {
		return 0
	}
	return w.overdue()
}

func (w *Window) overdue() time.Duration {
	if w.latency.count == 0 {
		return max(w.patience, time.Duration(4*safely*float64(w.latency.longest)))
	}
	return max(w.patience, 4*since(w.latency.usual+3*w.latency.spread))
}

// typical is how long a response takes; 0: nothing has ever worked.
func (w *Window) typical() time.Duration {
	if w.latency.count == 0 {
		return w.latency.longest
	}
	return since(w.latency.usual)
}

// isSilent reports whether nothing has succeeded for so long that no response is to be expected.
func (w *Window) isSilent() bool {
	quiet := w.latency.worked
	if w.latency.flying.After(quiet) {
		quiet = w.latency.flying
	}
	return time.Since(quiet) >= w.overdue()
}

// usual is longer if requests wait for their places: those that leave are then the last ones that
// have time for a response, also if the service has just become slower. A lookup that is too late
// loses nothing.
func (w *Window) usual() time.Duration {
	switch l := &w.latency; {
	case l.count == 0:
		return time.Duration(safely * float64(w.rtt))
	case w.patient, w.starting() && l.places == 0:
		return since(l.usual + l.spread)
	case l.places == 0:
		return since(l.usual + 3*l.spread)
	default:
		return max(time.Duration(safely*float64(since(l.limit()))), since(l.usual+l.spread))
	}
}

// Failed records a request that failed in a way that the next one may meet, too.
func (w *Window) Failed(request int, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled(request, 0, untimed)
	w.fails(request, why)
}

// fails draws the conclusions of a failure.
func (w *Window) fails(request int, why string) {
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
	down := w.isDown()
	switch {
	case down:
	case w.rtt == 0: // the first request of all says little: try again
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
