package flow

import (
	"context"
	"errors"
	"time"
)

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
