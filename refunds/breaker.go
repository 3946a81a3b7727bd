package refunds

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	// breakAfter failures in a run open the breaker.
	breakAfter = 5
	// The wait before a probe doubles from one to the other.
	firstProbe, slowestProbe = time.Second, 2 * time.Minute
)

// A breaker holds submission back while the service, or the way to it, fails.
// While it is open, one record at a time is sent to see whether it still does.
type breaker struct {
	giveUpAfter time.Duration // below zero: never

	failures int       // since the last answer to a record
	opened   time.Time // zero: closed
	wait     time.Duration
	probe    time.Time // when the next one is due
	probing  bool
}

func (b *breaker) isOpen() bool { return !b.opened.IsZero() }

// due is how long it is until the next record may be sent.
func (b *breaker) due() time.Duration { return max(0, time.Until(b.probe)) }

// sent notes that a record is on its way.
func (b *breaker) sent() { b.probing = b.isOpen() }

// settled notes what became of a record. It tells whether it is time to give up.
func (b *breaker) settled(err error) (giveUp bool) {
	if !isOutage(err) {
		*b = breaker{giveUpAfter: b.giveUpAfter}
		return false
	}
	b.failures++
	now := time.Now()
	switch {
	case b.probing:
		b.probing = false
		b.wait = min(2*b.wait, slowestProbe)
	case b.isOpen(): // sent before it opened
		return false
	case b.failures >= breakAfter:
		b.opened, b.wait = now, firstProbe
	default:
		return false
	}
	b.probe = now.Add(b.wait/2 + rand.N(b.wait/2))
	if b.giveUpAfter < 0 {
		return false
	}
	// The last probe is at the end of the time, and not before.
	end := b.opened.Add(b.giveUpAfter)
	if b.probe.After(end) {
		b.probe = end
	}
	return !now.Before(end)
}

// isOutOfTime tells a record that could not be sent by the deadline, as no further
// one could, from one that the service is to blame for.
func isOutOfTime(err error) bool {
	return errors.Is(err, ErrLocalLimit) && errors.Is(err, context.DeadlineExceeded)
}

// isOutage tells the failures that the next record would meet too from an answer
// to this record: that it was accepted, or refused for what it holds.
func isOutage(err error) bool {
	if err == nil {
		return false
	}
	if !errors.Is(err, ErrRejected) {
		return true
	}
	for _, condition := range []error{ErrRateLimited, ErrUnauthorized, ErrForbidden, ErrNotFound, ErrRedirect, ErrServer} {
		if errors.Is(err, condition) {
			return true
		}
	}
	return false
}
