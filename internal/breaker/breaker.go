// Package breaker is the circuit breaker of the bulk calls: it holds a stream of
// requests back while the service, or the way to it, fails. It knows no service,
// starts no goroutine and never waits; the caller does, for as long as it says.
package breaker

import (
	"math/rand/v2"
	"time"
)

const (
	// threshold is the number of consecutive failures that opens the breaker.
	threshold = 5
	// The delay before a probe doubles from one to the other.
	firstDelay, maxDelay = time.Second, 2 * time.Minute
)

// A Breaker is closed until five requests in a row have failed. Open, it lets one
// request at a time through as a probe: after a second, then after delays that
// double up to two minutes, each shortened by up to half at random so that many
// processes do not probe in step. One success closes it.
//
// The zero value is closed and gives up at once; set GiveUpAfter. A Breaker is not
// safe for concurrent use: it belongs to the goroutine that runs the stream.
//
//	if inFlight < b.Limit(concurrency) {
//		b.Sent()
//		// start a request
//	} else {
//		// wait for a response, or for b.Delay() if nothing is in flight
//	}
//	…
//	if b.Settled(failed) {
//		// give up
//	}
type Breaker struct {
	// GiveUpAfter is how long the breaker may stay open. Below zero it may for ever.
	GiveUpAfter time.Duration
	// Jitter returns a random duration of at least 0 and less than below. Nil is
	// rand.N; a simulation that is to be replayed sets its own.
	Jitter func(below time.Duration) time.Duration

	failures  int       // in a row
	openSince time.Time // zero: closed
	delay     time.Duration
	nextProbe time.Time
	probing   bool
}

// Open reports whether requests are held back.
func (b *Breaker) Open() bool { return !b.openSince.IsZero() }

// Limit is how many requests may be in flight at the moment: concurrency while
// the breaker is closed, 1 if a probe is due, and otherwise 0. So a probe is not
// sent before the requests that were in flight when it opened have settled.
func (b *Breaker) Limit(concurrency int) int {
	switch {
	case !b.Open():
		return concurrency
	case b.Delay() == 0:
		return 1
	default:
		return 0
	}
}

// Delay is the time until the next probe is due: 0 if it is, or if the breaker is
// closed.
func (b *Breaker) Delay() time.Duration {
	if !b.Open() {
		return 0
	}
	return max(0, time.Until(b.nextProbe))
}

// Sent records that a request was started.
func (b *Breaker) Sent() { b.probing = b.Open() }

// Settled records how a request ended. A failure is one that the next request
// would meet too; a response that concerns its own request alone is none. Settled
// reports whether to give up: the breaker has been open for GiveUpAfter, and a
// last probe at the end of that time has failed.
func (b *Breaker) Settled(failed bool) (giveUp bool) {
	if !failed {
		*b = Breaker{GiveUpAfter: b.GiveUpAfter, Jitter: b.Jitter}
		return false
	}
	return b.fail(false)
}

// Repeated is Settled for a failure that says nothing new of the service: after a probe
// that met it, the next one is due after the first delay, and the delay does not grow.
func (b *Breaker) Repeated() (giveUp bool) { return b.fail(true) }

func (b *Breaker) fail(repeated bool) (giveUp bool) {
	b.failures++
	now := time.Now()
	switch {
	case b.probing:
		b.probing = false
		if !repeated {
			b.delay = min(2*b.delay, maxDelay)
		}
	case b.Open(): // sent before it opened
		return false
	case b.failures >= threshold:
		b.openSince, b.delay = now, firstDelay
	default:
		return false
	}
	jitter := b.Jitter
	if jitter == nil {
		jitter = rand.N[time.Duration]
	}
	delay := b.delay
	if repeated {
		delay = firstDelay
	}
	b.nextProbe = now.Add(delay/2 + jitter(delay/2))
	if b.GiveUpAfter < 0 {
		return false
	}
	end := b.openSince.Add(b.GiveUpAfter)
	if b.nextProbe.After(end) {
		b.nextProbe = end
	}
	return !now.Before(end)
}
