// Package adaptive finds the rate limit of a service that does not document one.
//
// A [Limiter] paces the requests of one client. It doubles its rate until the
// service refuses for the first time. From then on it searches: it goes to what
// the service accepted between two refusals, a little below that, and raises the
// rate again, slowly at first and the faster the longer nothing is refused. A
// service that was given more capacity is found in this way, and one that kept
// its limit refuses less than one request in fifty.
//
// The search knows nothing of how the service counts. A token bucket, a fixed
// window of a second or a minute, a sliding window and a bound on requests in
// flight all show in the same two numbers: what was accepted, and for how long
// nothing was.
package adaptive

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

var errDeadline = errors.New("the wait would exceed the deadline")

const firstHold, maxHold = 100 * time.Millisecond, 20 * time.Second

// A Limiter paces requests. Create it with [New]. It is safe for concurrent use.
type Limiter struct {
	// turn lets one caller reserve at a time. SetLimit does not move reservations
	// made before it: with several of them open, a lower rate would come too late.
	turn chan struct{}
	wake chan struct{} // ends the pause of the caller whose turn it is
	pace *rate.Limiter

	mu     sync.Mutex
	search search
	cut    time.Time     // of the last refusal that counted; what was sent before it says nothing new
	until  time.Time     // nothing is sent before it
	hold   time.Duration // above 0: the service refuses, and single requests at this distance ask again
}

// New returns a limiter that begins at start requests a second and never exceeds
// most. Both are above 0.
func New(start, most rate.Limit) *Limiter {
	start = min(start, most)
	l := &Limiter{turn: make(chan struct{}, 1), wake: make(chan struct{}, 1), pace: rate.NewLimiter(start, 1)}
	l.search = search{most: float64(most), rate: float64(start), base: float64(start), mark: time.Now(), tick: time.Now()}
	return l
}

// Rate is the present rate, in requests a second.
func (l *Limiter) Rate() rate.Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return rate.Limit(l.search.rate)
}

// Wait returns when a request may be sent, and fails as soon as it is certain
// that this will not be before the deadline of ctx.
func (l *Limiter) Wait(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.turn }()
	for {
		if err := l.pause(ctx); err != nil {
			return err
		}
		// The rate changes here, while nobody has a reservation open: one made at a low
		// rate and followed by one at a higher rate would let two requests go at once.
		// A burst of 2.5 ms is for timers, which cannot space requests more closely.
		l.pace.SetLimit(l.Rate())
		l.pace.SetBurst(max(1, int(l.pace.Limit()/400)))
		if err := l.pace.Wait(ctx); err != nil {
			return err
		}
		if l.leave() {
			return nil
		}
	}
}

// leave tells whether the request may still go, as a refusal may have come while
// it waited.
func (l *Limiter) leave() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	may := !now.Before(l.until)
	if may && l.hold > 0 {
		l.until = now.Add(max(l.hold, time.Second)) // the next waits for the response to this one
	}
	return may
}

// pause waits until nothing forbids sending. A pause that the service asked for
// is certain, so a deadline within it ends the wait at once. One of this side's
// own ends as soon as a request is accepted.
func (l *Limiter) pause(ctx context.Context) error {
	for {
		l.mu.Lock()
		left, asked := time.Until(l.until), l.hold == 0
		l.mu.Unlock()
		if left <= 0 {
			return nil
		}
		if deadline, ok := ctx.Deadline(); ok && asked && time.Until(deadline) < left {
			return errDeadline
		}
		select {
		case <-time.After(left):
		case <-l.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Accepted reports a response that was no refusal, to a request sent at sent.
func (l *Limiter) Accepted(sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold > 0 && !sent.Before(l.cut) {
		l.hold, l.until = 0, time.Time{}
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	l.search.accepted(time.Now())
}

// Refused reports that the service refused a request sent at sent as one too
// many, and the Retry-After that it gave, or 0.
func (l *Limiter) Refused(sent time.Time, retryAfter time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if asked := now.Add(retryAfter); retryAfter > 0 && asked.After(l.until) {
		l.until = asked
	}
	if !sent.After(l.cut) {
		return // sent before the last cut, at the rate that was too high
	}
	l.cut = now
	if l.hold == 0 {
		l.search.refused(now)
	}
	if retryAfter > 0 {
		l.hold = 0
		return
	}
	first := max(firstHold, time.Duration(1.5/l.search.rate*float64(time.Second)))
	longest := min(maxHold, max(maxHold/4, time.Duration(50/l.search.rate*float64(time.Second))))
	l.hold = min(max(first, 2*l.hold), longest)
	l.until = now.Add(l.hold)
}
