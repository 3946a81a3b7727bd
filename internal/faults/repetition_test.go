package faults

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// many is as often as the settings allow.
const many = 100

// gaveUp finds a call that failed although it was to be repeated: there was time,
// and its repetitions were not used up. repeatable is how often an ending
// invites another attempt.
func (c *call) gaveUp(err error, repeatable func(trace) int) {
	const plenty = 75 * time.Second // a pause of a minute, with its spread, and a backoff
	s := c.w.settings
	switch {
	case !c.ends.IsZero() && time.Until(c.ends) < plenty, errors.Is(err, context.Canceled),
		errors.Is(err, bins.ErrLocalLimit), errors.Is(err, bins.ErrCredential), c.w.storm.outage != nil:
		return // there was no time, or no leave, or the budget may be spent
	}
	for _, j := range c.w.wire.of(c) {
		end := j.trail[len(j.trail)-1]
		if end.retryAfter > time.Minute || j.sent-j.hops > s.retries {
			continue
		}
		alike := 0
		for _, t := range j.trail {
			if t.status == end.status {
				alike++
			}
		}
		if repeatable(end) >= alike {
			c.w.violate(gaveUp, "%s: after %d of %d attempts: status %d, %v", c, j.sent, 1+s.retries, end.status, end.err)
		}
	}
}

// repeatableRead is how often the ending of a read invites another.
func (w *world) repeatableRead(t trace) int {
	switch t.status {
	case 0:
		if isDialError(t.err) || errors.Is(t.err, syscall.ECONNRESET) || errors.Is(t.err, syscall.EPIPE) {
			return many
		}
	case 429, 502, 503, 504:
		return many
	case 500, 408:
		return 2
	case 421, 425:
		return 1
	case 401:
		return w.renewals()
	}
	return 0
}

// repeatableWrite is the same for a write: never, if it may have been processed.
func (w *world) repeatableWrite(t trace) int {
	switch t.status {
	case 0:
		if isDialError(t.err) && !w.settings.opaque {
			return many
		}
	case 429:
		return many
	case 421, 425:
		return 1
	}
	return 0
}

// isDialError tells whether no connection was made, and another attempt may make
// one.
func isDialError(err error) bool {
	dns, failed := errors.AsType[*net.DNSError](err)
	return failed && !dns.IsNotFound || errors.Is(err, syscall.ECONNREFUSED)
}

// renewals is how often a refused token is replaced.
func (w *world) renewals() int {
	if w.tokens.static || w.tokens.fails > 0 || w.parts.part == tokenSource {
		return 0
	}
	return 1
}
