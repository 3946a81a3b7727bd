package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/refunds"
)

// many is as often as the settings allow.
const many = 100

// gaveUp finds a call that failed although it was to be repeated: there was time,
// and its repetitions were not used up.
func (c *call) gaveUp(err error, write bool) {
	const plenty = 75 * time.Second // a pause of a minute, with its spread, and a backoff
	s := c.w.settings
	switch {
	case !c.ends.IsZero() && time.Until(c.ends) < plenty, errors.Is(err, context.Canceled),
		errors.Is(err, bins.ErrLocalLimit), errors.Is(err, bins.ErrCredential), errors.Is(err, refunds.ErrSuspended), c.w.storm.outage != nil, c.w.storm.ends > 0:
		return // there was no time, or no leave, or the budget may be spent
	}
	for _, j := range c.w.wire.of(c) {
		if len(j.trail) == 0 {
			continue // it goes on: see leavesNothing
		}
		end := j.trail[len(j.trail)-1]
		if end.retryAfter > time.Minute || j.sent-j.hops > s.retries || end.status == 401 && !c.w.renewsTokens() {
			continue
		}
		if c.w.repetitions(end, write) >= alike(j.trail) {
			c.w.violate(gaveUp, "%s: after %d of %d attempts: status %d, %v", c, j.sent, 1+s.retries, end.status, end.err)
		}
	}
}

// alike counts the attempts that ended with the same status as the last.
func alike(trail []trace) (n int) {
	for _, t := range trail {
		if t.status == trail[len(trail)-1].status {
			n++
		}
	}
	return n
}

// repetitions is how often a request is repeated after one ending. A write is not
// repeated if it may have been processed.
func (w *world) repetitions(t trace, write bool) int {
	switch {
	case t.status == 0:
		broken := errors.Is(t.err, syscall.ECONNRESET) || errors.Is(t.err, syscall.EPIPE)
		if isDialError(t.err) && (!write || w.settings.ownTransport()) || broken && !write {
			return many
		}
	case t.status == 401:
		return 1
	case write && w.settings.vouched && (t.status == 429 || t.status == 503), t.status == 429 && t.signed:
		return many
	case write && !w.settings.resubmit:
		return 0
	case t.status == 429:
		return many
	case t.status == 406, t.status == 416, t.status == 424:
		return 0
	case t.status == 421, t.status == 425:
		return 1
	case t.status == 502, t.status == 503, t.status == 504:
		return many
	case t.status/100 == 4 && slices.Contains(undecided, t.status), t.status/100 == 5 && t.status != 501 && t.status != 505:
		return 2
	}
	return 0
}

// excess says what is too much about one more attempt now: its number, after a status
// that allows fewer retries, or the wait before it. "" is nothing.
func (w *wire) excess(trail []trace, write bool, now time.Time) string {
	end := trail[len(trail)-1]
	if end.hop || end.status/100 < 3 {
		return ""
	}
	if n, most := alike(trail), w.w.repetitions(end, write); n > most {
		return fmt.Sprintf("is retry %d after status %d, which allows %d", n, end.status, most)
	}
	paused := slices.ContainsFunc(w.pauses, func(p pause) bool { return p.to.After(end.ended.Add(end.retryAfter + time.Millisecond)) })
	settings := w.w.settings
	if settings.limit > 0 || w.w.tokens.delay > 0 || w.w.parts.part != "" || paused {
		return "" // it may have waited for these
	}
	base := settings.waitBase
	vouched := write && w.w.settings.vouched && end.status == 503
	if (end.status == 429 || vouched) && base > 0 {
		base = max(base, min(time.Second, settings.waitMax))
	}
	most := min(base<<(len(trail)-1), settings.waitMax)
	if end.retryAfter > 0 {
		most += end.retryAfter + end.retryAfter/4 + time.Second // with its spread
	}
	if waited := now.Sub(end.ended); waited > most+cmp.Or(settings.attemptTimeout, 5*time.Second+time.Millisecond) { // for the body, too
		return fmt.Sprintf("comes %v after status %d, at most %v later", waited, end.status, most)
	}
	return ""
}

// isDialError tells whether no connection was made, and another attempt may make
// one.
func isDialError(err error) bool {
	dns, failed := errors.AsType[*net.DNSError](err)
	return failed && !dns.IsNotFound || errors.Is(err, syscall.ECONNREFUSED)
}

// renewsTokens tells whether another token replaces a refused one.
func (w *world) renewsTokens() bool {
	return !w.tokens.static && w.tokens.fails == 0 && w.parts.part != tokenSource
}

// The budget as it is documented: so much at first, so much for each repetition,
// and so much at most that a success earns.
const (
	budgetFull   = 500
	costRetry    = 5
	earnedAtMost = 10
)

func (w *wire) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unclosed != 0 {
		defer w.w.violate(leaked, "%d bodies were not closed", w.unclosed)
	}
	spent, earned := 0, 0
	for _, j := range w.journeys {
		if j.call == nil || j.call.beginnings != probes { // what a bulk call sends again later is no retry
			spent += max(0, j.sent-j.hops-1) * costRetry
		}
		if end := j.trail[len(j.trail)-1]; end.status/100 == 2 {
			earned += earnedAtMost
		}
	}
	if spent > budgetFull+earned {
		defer w.w.violate(overBudget, "repetitions for %d of %d", spent, budgetFull+earned)
	}
	if w.w.settings.limit > 0 && w.w.parts.part != limiter {
		if i, n := w.crowded(); n > 0 {
			defer w.w.violate(overLimit, "%d requests within %v", n, w.sends[i+n-1].Sub(w.sends[i]))
		}
	}
}

// atOnce is by how much a request may leave after the limiter's leave: a shorter wait for its place in flight
// counts as none, and the limiter is not asked again.
const atOnce = time.Millisecond

// crowded finds more requests than the limit lets through in their time.
func (w *wire) crowded() (from, n int) {
	for i := range w.sends {
		for k := i; k < len(w.sends); k++ {
			allowed := float64(w.w.settings.burst) + float64(w.w.settings.limit)*(w.sends[k].Sub(w.sends[i])+atOnce).Seconds()
			if n := k - i + 1; float64(n) > allowed+0.001 {
				return i, n
			}
		}
	}
	return 0, 0
}
