package transport

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/flow"
)

// shouldRetry runs after each attempt, as CheckRetry. It looks at the attempt; its arguments
// are only net/http's view of it.
//
// The order is: apply the pause that the response asks of all calls; ask the policy; check
// the time left; refresh a refused token; take a retry from the budget. The budget comes last
// so that a retry that is not made costs nothing.
func (inv *invocation) shouldRetry(ctx context.Context, _ *http.Response, _ error) (bool, error) {
	a := inv.current
	if a == nil || inv.unsent != nil {
		return false, nil // no attempt was sent
	}
	retryAfter := a.retryAfter()
	if a.asksToWait() {
		if pause := min(retryAfter, MaxRetryAfter); inv.client.throttle.Asks(inv.call.Account, pause) {
			inv.logPause(a, pause)
		}
	}
	if inv.call.Observe != nil && a.verdict != fault.Success { // the observer then sees the pause
		inv.call.Observe(inv.attempts, inv.failure(a))
	}
	// The service answered a request that it refused, or a result that is not ready. This is
	// no sign of overload.
	if a.verdict == fault.Success || a.verdict == fault.NotReady || a.StatusCode/100 == 4 && a.verdict.Retries == 0 {
		inv.client.budget.give(inv.credit)
		return false, nil
	}
	// Do not wait out a long Retry-After; report it to the caller.
	if !inv.mayRetry(a) || retryAfter > MaxRetryAfter {
		return false, nil
	}
	// A retry was due, and the error must say that the caller ended it. After a final
	// response, such as a 400, the end of the context does not matter.
	if ctx.Err() != nil {
		inv.retryDue = true
		return false, nil
	}
	cost := costRetry
	inv.wait = inv.settings.backoff(ctx, inv.retries, a.verdict.IsLimit() || a.isVouched(), retryAfter)
	if a.verdict == fault.Unauthorized {
		if !inv.refreshToken(a) {
			return false, nil
		}
		inv.wait, cost = 0, costFreshAuth // the service works; only the token was wrong
	}
	// Do not begin a wait that the deadline would cut short: return the response now instead
	// of a timeout later.
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= inv.wait {
		return false, nil
	}
	// Report the refusal in the error and the log; otherwise a call that ends after one
	// attempt looks misconfigured.
	if !inv.client.budget.take(cost) {
		inv.event(slog.LevelWarn, "retry budget spent") // a warning, because no call of the client is retried now
		inv.budgetSpent = true
		return false, nil
	}
	// From here on the call cannot prove that the write is unprocessed, however its last
	// attempt ends.
	if inv.call.Write && a.outcome() == fault.OutcomeUnknown {
		inv.ambiguous = a
	}
	inv.credit = cost // a successful retry earns back its cost
	if inv.retries++; inv.retries == 1 {
		inv.retried = map[*fault.Verdict]int{}
	}
	inv.retried[a.verdict]++
	inv.retryDue = true
	return true, nil
}

// mayRetry asks the policy how often to retry, and the outcome whether a write may be retried
// at all. A write with an unknown outcome is repeated only under Resubmit. One that the caller's
// word makes refused is repeated if the failure passes by itself.
//
// Three limits apply: the retries of the call, the retries after this verdict within the
// call, and the retry budget of the client.
func (inv *invocation) mayRetry(a *attempt) bool {
	if inv.call.Bulk && !inv.settings.Resubmit && a.verdict != fault.Unauthorized && a.verdict != fault.Misdirected && a.verdict != fault.TooEarly {
		return false
	}
	if inv.call.Enough != nil && inv.call.Enough(inv.failure(a)) {
		return false
	}
	switch outcome := a.outcome(); {
	case a.isVouched() && !inv.settings.Resubmit && !a.verdict.WillPass():
		return false
	case !inv.call.Write, outcome == fault.OutcomeNotSent, outcome == fault.OutcomeRejected, outcome == fault.OutcomeUnknown && inv.settings.Resubmit:
		return inv.retries < inv.settings.MaxRetries && inv.retried[a.verdict] < a.verdict.Retries
	}
	return false
}

// refreshToken asks for another token, and reports whether it got one. Sending the refused
// token again would fail again.
func (inv *invocation) refreshToken(a *attempt) bool {
	if a.token == "" {
		return false // to another host, or without a credential
	}
	token, failed, err := inv.token(inv.ctx, a.token)
	if err != nil {
		// Later calls only see the source's failure; this call also saw the 401, so report
		// both.
		a.verdict, a.err = failed, fault.NewError(err.Error(), fault.ErrUnauthorized, err)
		return false
	}
	inv.freshToken = token
	return token != a.token
}

const (
	// MaxRetryAfter is the longest wait that the service can impose. A longer one ends the
	// call and is reported, so that the caller can plan for it.
	MaxRetryAfter = time.Minute
	// leastBackoff is the first of the least waits of bulk calls.
	leastBackoff = 10 * time.Millisecond
	// throttleBase is the base wait after a 429 without Retry-After. Quotas count in seconds
	// and minutes, so a base of milliseconds would be too short.
	throttleBase = time.Second
)

// retryAfter is the wait that a response asked for. It is zero if there is none that can be read,
// or if the response is a success. A 202 counts, because it says when to come back.
func (a *attempt) retryAfter() time.Duration {
	if a.StatusCode < 300 && a.verdict != fault.NotReady && a.verdict != fault.UnexpectedStatus && a.verdict != fault.ErrorObject {
		return 0
	}
	wait, _ := fault.RetryAfter(a.Header)
	return wait
}

// asksToWait reports whether a response asks that no attempt follows for a while.
func (a *attempt) asksToWait() bool {
	return a.retryAfter() > 0 && !a.away && (a.verdict.IsLimit() || a.verdict == fault.ServerUnavailable)
}

// backoff is full jitter: a random wait from zero to a bound that doubles with each of the n
// retries before. It starts at zero on purpose: jitter around a fixed wait would send the
// retries of an outage in waves.
//
// The bound is at most a quarter of the time that the call has left: a short deadline is for
// several attempts, and not for one wait. After a 429 it is not: an early retry is refused
// again.
//
// A wait that the service asked for is a lower limit, with some jitter above it, so that
// calls that were refused together do not return together.
func (s *Settings) backoff(ctx context.Context, n int, limited bool, retryAfter time.Duration) time.Duration {
	base, limit := s.WaitBase, s.WaitMax
	if limited && base > 0 {
		base = max(base, min(throttleBase, limit))
	}
	bound := limit
	if grown := math.Ldexp(float64(base), n); grown < float64(limit) { // a shift would overflow
		bound = time.Duration(grown)
	}
	if deadline, ok := ctx.Deadline(); ok && !limited {
		bound = min(bound, time.Until(deadline)/4)
	}
	wait := s.random(ctx, max(bound, 1)) // nothing for a bound of 0
	if retryAfter > 0 {
		wait = max(wait, retryAfter+s.random(ctx, min(time.Second, retryAfter/10)+1))
	}
	return wait
}

// Backoff is the wait of a bulk call before it makes a call again, after n such waits. It has a least
// time, which keeps a call from being made again and again if WithRetryWait is 0.
func (c *Client) Backoff(ctx context.Context, n int, limited bool, retryAfter time.Duration) time.Duration {
	least := min(leastBackoff<<min(n, 10), time.Second)
	return max(c.settings.backoff(ctx, n, limited, retryAfter), least)
}

// NewWindow returns a window for requests that load the service together.
func (c *Client) NewWindow(ctx context.Context) *flow.Window {
	return flow.New(func(below time.Duration) time.Duration { return c.Jitter(ctx, below) })
}

// Jitter is the random part of a wait between calls.
func (c *Client) Jitter(ctx context.Context, below time.Duration) time.Duration {
	return c.settings.random(ctx, below)
}

// A budget limits a client's retries to a fraction of its traffic, so that retries do not
// multiply the load of an outage. Every retry costs, and every success at the first attempt
// earns. A full budget lets an idle client retry at once. If everything fails, retries soon
// stop.
type budget struct {
	mu     sync.Mutex
	tokens int
}

// A client starts with a hundred retries, and earns one for five calls that succeed at once.
// A retry that succeeds is free.
const (
	budgetFull    = 500
	costRetry     = 5
	earnedByCall  = 1
	costFreshAuth = 0 // a fresh token adds no load, and with an old one every call fails
)

func (b *budget) take(cost int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < cost {
		return false
	}
	b.tokens -= cost
	return true
}

func (b *budget) give(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(budgetFull, b.tokens+n)
}
