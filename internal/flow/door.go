package flow

import (
	"container/list"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// A Window holds the requests to one service. It is safe for concurrent use: share one among all
// calls that load the service together.
type Window struct {
	jitter func(below time.Duration) time.Duration

	mu       sync.Mutex
	line     line
	last     int // number of the last request
	newest   int // number of the newest request that succeeded
	inFlight int

	responses int           // counted up to meanOf
	rtt       time.Duration // mean time of a response; 0: there was none
	rttvar    time.Duration // mean deviation from it

	start   start
	level   level
	queue   queue
	breaker breaker
}

// New returns a window. Jitter returns a random duration of at least 0 and less than below; nil is
// rand.N.
func New(jitter func(below time.Duration) time.Duration) *Window {
	if jitter == nil {
		jitter = rand.N[time.Duration]
	}
	return &Window{jitter: jitter}
}

// A Request asks for a place in flight.
type Request struct {
	// Of stands for what would fail again if it is sent again, such as a refund: its failures count
	// once. It is a hash, because fmt would print an id. Zero: each counts.
	Of uint64
	// Retry goes to the front of the line.
	Retry bool
	// Bulk is one of many that wait for places. It keeps to a slow start, whereas the
	// requests of single calls leave as they come once the service works. It is never too late,
	// because its response may come after the deadline.
	Bulk bool
	// Since is when its attempt began. Whoever has waited since then, and has too little time left
	// for a response, is too late. Zero: it has not waited.
	Since time.Time
}

// A Result is how a request ended.
type Result struct {
	Says Says
	Took time.Duration // from the first byte of the request to the response, or to the end of the wait for it; 0: it says nothing
	Why  string        // its condition, if it failed
}

// Says is what the end of a request says of the service.
type Says int

const (
	Nothing  Says = iota // it was not sent, or its caller ended it
	Answer               // the service refused it for what it is
	Success              // the service accepted it
	Failure              // it failed, which says nothing of the load
	Overload             // the service has too much to do
	Late                 // there was no response by its deadline
)

// A flight is a request in flight.
type flight struct {
	number int
	with   int // how many were in flight when it left, itself included
	left   time.Time
	of     uint64
	group  *group
	ended  bool
}

// ErrTooLate is the error of a request that would hardly have a response by its deadline.
var ErrTooLate = errors.New("no time is left for a response")

// Down returns a *Pause if the service is down and no probe is due, and otherwise nil.
func (w *Window) Down() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.paused(time.Now()); p != nil {
		return p
	}
	return nil
}

// Acquire waits until a request may leave. It fails at once, and as soon as the service is down, with a
// *Pause; with ErrTooLate as soon as the deadline of ctx leaves too little time for a response; and
// with the error of ctx. A request that finds a place at once has it, however little time is left. The
// caller owes one call of release; further ones do nothing.
func (w *Window) Acquire(ctx context.Context, r Request) (release func(Result), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	me := w.line.enter(r.Retry)
	defer w.line.leave(me)
	deadline, _ := ctx.Deadline()
	if r.Bulk {
		deadline = time.Time{}
	}
	waited := !r.Since.IsZero() && time.Since(r.Since) > w.usual()/20
	for {
		release, next, err := w.admits(time.Now(), me, r, deadline, waited)
		if release != nil || err != nil {
			return release, err
		}
		w.mu.Unlock()
		err = w.line.wait(ctx, me, next)
		w.mu.Lock()
		if err != nil {
			return nil, err
		}
		waited = true
	}
}

// admits lets a request leave, fails it, or returns when to look again at the latest; zero: when it is
// woken.
func (w *Window) admits(now time.Time, me *list.Element, r Request, deadline time.Time, waited bool) (release func(Result), next time.Time, err error) {
	if p := w.paused(now); p != nil {
		return nil, next, p
	}
	late := deadline.Add(-w.usual())
	if !deadline.IsZero() && waited && !late.After(now) {
		return nil, next, ErrTooLate
	}
	if w.line.isFirst(me) {
		next = w.due(now, r.Bulk)
		if !next.IsZero() && !next.After(now) {
			return w.send(now, r), time.Time{}, nil
		}
	}
	if !deadline.IsZero() && (next.IsZero() || late.Before(next)) {
		next = late
	}
	return nil, next, nil
}

// due returns when the next request may leave; zero: only the end of another one lets it.
func (w *Window) due(now time.Time, bulk bool) time.Time {
	if w.breaker.open {
		return now // as the probe
	}
	changes, most := w.start.allows(now, bulk)
	if w.level.isKnown() {
		changes, most = time.Time{}, places(w.level.now)
	}
	if w.queue.places > 0 {
		changes, most = time.Time{}, min(most, places(w.queue.places))
	}
	switch {
	case w.inFlight >= most:
		w.level.wanted = true
		return changes
	case w.level.isKnown():
		w.level.wanted = w.level.wanted || w.level.next.After(now)
		return w.level.next
	}
	return now
}

// send takes the place.
func (w *Window) send(now time.Time, r Request) (release func(Result)) {
	w.last++
	w.inFlight++
	f := &flight{number: w.last, with: w.inFlight, left: now, of: r.Of}
	w.start.begins(now)
	w.level.leaves(w, now)
	w.queue.leaves(f)
	w.breaker.leaves(w, f)
	return func(res Result) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !f.ended {
			w.ends(f, res)
			w.line.wake()
		}
	}
}

// ends draws the conclusions of a result.
func (w *Window) ends(f *flight, r Result) {
	now := time.Now()
	w.inFlight--
	f.ended = true
	overtaken := f.number < w.newest // the service works
	switch r.Says {
	case Success:
		w.newest = max(w.newest, f.number)
		w.takes(r.Took)
		w.start.successes++
		w.breaker.succeeds(w, now)
		w.queue.responds(f, r.Took)
		w.level.accepts(w, f, now)
	case Answer:
		w.breaker.saysNothing(f, now)
		w.level.accepts(w, f, now)
	case Overload:
		w.breaker.fails(w, f, r.Why, now, false)
		w.level.refuses(w, f, now)
	case Failure:
		w.breaker.fails(w, f, r.Why, now, false)
	case Late:
		switch {
		case overtaken && r.Took > w.rtt: // it takes at least as long again
			w.takes(2 * r.Took)
		case !overtaken && r.Took >= 2*w.rtt:
			w.breaker.fails(w, f, r.Why, now, true)
		}
	case Nothing:
		w.breaker.saysNothing(f, now)
	}
	w.queue.ends(w, f, r.Took, now)
}

// meanOf is how many responses the mean time of a response is taken of.
const meanOf = 50

// takes notes the time of a response.
func (w *Window) takes(took time.Duration) {
	if took = max(took, 1); w.rtt == 0 {
		w.rtt, w.rttvar = took, took/2
	}
	w.responses = min(w.responses+1, meanOf)
	took = min(took, 5*w.rtt)
	w.rttvar += ((took - w.rtt).Abs() - w.rttvar) / time.Duration(w.responses)
	w.rtt += (took - w.rtt) / time.Duration(w.responses)
}

// usual is the time within which most responses come: as the timeout of TCP, with a margin also for a
// steady service; 0: it is not known.
func (w *Window) usual() time.Duration { return w.rtt + max(4*w.rttvar, w.rtt/2) }

// A State says how a window sees its service.
type State struct {
	Level       float64   // requests that may leave in each round trip; 0: no limit is known
	InFlight    int       // requests
	Waiting     int       // calls that wait for a place
	PausedUntil time.Time // the service is down, and the next probe is due then; zero: it is not down
	Since       time.Time // the first failure of that outage
	Why         string    // the condition of the last failure
}

// IsDown reports whether the service is down.
func (s State) IsDown() bool { return !s.PausedUntil.IsZero() }

// State returns the current state.
func (w *Window) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := State{Level: w.level.now, InFlight: w.inFlight, Waiting: w.line.Len(), Why: w.breaker.why}
	if w.queue.places > 0 && (s.Level == 0 || w.queue.places < s.Level) {
		s.Level = w.queue.places
	}
	if w.breaker.open {
		s.PausedUntil, s.Since = w.breaker.probeAt, w.breaker.since
	}
	return s
}
