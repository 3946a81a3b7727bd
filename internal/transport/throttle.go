package transport

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/internal/adaptive"
)

// Everything that makes an attempt wait, or keeps it from being made: the
// caller's limiter, the cooldown that the service asked for, the backoff between
// the attempts of one call, and the retry budget of all calls of a client.

// A Limiter is declared anew, with the same method, in the packages that take
// one.
type Limiter interface {
	Wait(ctx context.Context) error
}

// A throttle holds every attempt of a client back during a cooldown, for which
// the service asks with Retry-After beside a 429 or 503. One call that is told
// to wait speaks for all: the others would only be told the same, and their
// requests are part of what the service is overloaded with.
type throttle struct {
	mu          sync.Mutex
	cooldownEnd time.Time
}

// cooldown extends the cooldown to d from now. It never shortens one: of
// several responses the most cautious counts.
func (t *throttle) cooldown(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if end := time.Now().Add(d); end.After(t.cooldownEnd) {
		t.cooldownEnd = end
	}
}

func (t *throttle) remaining() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(0, time.Until(t.cooldownEnd))
}

// wait returns when the cooldown is over and the limiter lets the attempt go. It
// fails at once if the deadline comes first: a caller who is told now can still
// do something else, and one who waits in vain takes a place in the queue.
func (t *throttle) wait(ctx context.Context, s *Settings) error {
	for {
		if left := t.remaining(); left > 0 {
			if err := waitCooldown(ctx, s, left); err != nil {
				return err
			}
		}
		if s.Limiter != nil {
			if err := s.Limiter.Wait(ctx); err != nil {
				return limiterRefusal(ctx, s.Limiter, err)
			}
		}
		// A cooldown may have begun while this attempt queued for the limiter.
		if t.remaining() == 0 {
			return nil
		}
	}
}

// errNoTurn marks the refusal of a call after which no other has its turn.
var errNoTurn = errors.New("no further call can be sent")

var errCooldown = NewError("the service asked all calls to wait beyond this call's deadline", ErrLocalLimit, errNoTurn, context.DeadlineExceeded)

func waitCooldown(ctx context.Context, s *Settings, left time.Duration) error {
	// Those who waited together must not all set off together: they spread over an eighth
	// of the wait, or what the deadline leaves of it.
	spread := left/8 + time.Millisecond
	if deadline, ok := ctx.Deadline(); ok {
		spare := time.Until(deadline) - left
		if spare <= 0 {
			return errCooldown
		}
		spread = min(spread, spare/2+1)
	}
	return Sleep(ctx, left+s.jitter(ctx, spread))
}

// Throttled is the failure of a call that a cooldown would outlast, or nil. It is
// for calls that wait for the response to another call.
func (c *Client) Throttled(ctx context.Context, operation string) *Failure {
	left := c.throttle.remaining()
	if deadline, ok := ctx.Deadline(); !ok || left == 0 || time.Until(deadline) > left {
		return nil
	}
	return &Failure{Operation: operation, RetryAfter: left, Err: errCooldown}
}

// limiterRefusal says that the refusal is local. x/time/rate refuses a wait that
// would pass the deadline with an error which is not context.DeadlineExceeded,
// though it means that. What the error of another limiter means is not known.
func limiterRefusal(ctx context.Context, l Limiter, err error) error {
	if ctxErr := ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	causes := []error{ErrLocalLimit, err}
	_, adapts := l.(*adaptive.Limiter)
	if r, ok := l.(*rate.Limiter); ok && r.Burst() == 0 {
		causes = []error{ErrLocalLimit, errNoTurn, err} // it never lets a call through
	} else if ok || adapts {
		causes = []error{ErrLocalLimit, errNoTurn, context.DeadlineExceeded, err}
	}
	return NewError(limiterRefused.msg, causes...)
}

// NoTurn reports that a limit or a pause lets no further call through, before the
// deadline or at all.
func NoTurn(err error) bool {
	cause, ok := (&Failure{Err: err}).facts().cause.(*safeError) // and not what it holds of another call
	return ok && slices.Contains(cause.causes(), errNoTurn)
}

// adapt tells an adaptive limiter what became of a request. A failure of the service
// says nothing about its limit.
func (inv *invocation) adapt(a *attempt) {
	l, ok := inv.settings.Limiter.(*adaptive.Limiter)
	if status := a.StatusCode; !ok || a.away || status == 0 || status >= 500 {
		return
	}
	// A refusal says nothing of a rate that the limiter has left since: it knows by the
	// time at which the request was sent.
	before, refused := l.Rate(), a.verdict == rateLimited
	if refused {
		l.Refused(a.Evidence.Began, a.retryAfter())
	} else {
		l.Accepted(a.Evidence.Began)
	}
	// That it creeps back between two refusals, by a little every second, is no news.
	if now := l.Rate(); refused && now != before || now > 1.1*before {
		inv.event(slog.LevelInfo, "rate", slog.Float64("rate", float64(now)))
	}
}

// Rate is what an adaptive limiter allows at present, in requests a second; 0
// without one.
func (c *Client) Rate() rate.Limit {
	if l, ok := c.settings.Limiter.(*adaptive.Limiter); ok {
		return l.Rate()
	}
	return 0
}

const (
	// maxRetryAfter is the longest wait that the service can impose. A longer one
	// ends the call and is reported instead: it is for the caller to plan hours.
	maxRetryAfter = time.Minute
	// throttleBase replaces the base wait after a 429 that names no wait. Quotas are
	// counted in seconds and minutes, not in the milliseconds of a hiccup.
	throttleBase = time.Second
	// retryAfterCeiling keeps absurd values representable.
	retryAfterCeiling = 365 * 24 * time.Hour
)

// retryAfter is the wait that a response asked for, in whole seconds or one of the
// three HTTP date forms. Zero is "none": an absent, unreadable or past value, or that of
// a success or a page, which does not concern this call. A 202 says when to come back.
// go-retryablehttp reads the header as well, but its 64-bit multiplication overflows into
// the past, it obeys a wait of years, and it knows one date form.
func (a *attempt) retryAfter() time.Duration {
	value := strings.TrimSpace(a.Header.Get("Retry-After"))
	if value == "" || a.StatusCode < 300 && a.verdict != unexpectedStatus && a.verdict != errorObject {
		return 0
	}
	seconds, err := strconv.ParseUint(value, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) { // and then it is the largest there is
		return time.Duration(min(seconds, uint64(retryAfterCeiling/time.Second))) * time.Second
	}
	at, _ := http.ParseTime(value) // what cannot be read is long past
	return min(max(0, time.Until(at)), retryAfterCeiling)
}

// backoff is full jitter: anything from zero to a bound that doubles with each
// of the n retries before. The lower end is zero on purpose. Jitter around a
// fixed wait keeps the callers of an outage in waves, and this does not.
//
// A wait that the service asked for lengthens it to somewhat beyond that, so that calls
// which were refused together do not come back together.
func (s *Settings) backoff(ctx context.Context, n int, limited bool, retryAfter time.Duration) time.Duration {
	base, limit := s.WaitBase, s.WaitMax
	if limited && base > 0 {
		base = max(base, min(throttleBase, limit))
	}
	bound := limit
	if grown := math.Ldexp(float64(base), n); grown < float64(limit) { // a shift would overflow
		bound = time.Duration(grown)
	}
	wait := s.jitter(ctx, max(bound, 1)) // of a bound of 0, nothing
	if retryAfter > 0 {
		wait = max(wait, retryAfter+s.jitter(ctx, min(time.Second, retryAfter/10)+1))
	}
	return wait
}

// jitter is the random part of every wait: at least 0, and less than below, which
// is above 0.
func (s *Settings) jitter(ctx context.Context, below time.Duration) time.Duration {
	if s.random != nil {
		return s.random(ctx, below)
	}
	return rand.N(below)
}

// Jitter is the random part of a wait between calls, as it is of one between
// attempts.
func (c *Client) Jitter(ctx context.Context, below time.Duration) time.Duration {
	return c.settings.jitter(ctx, below)
}

// Sleep waits, and returns early with an error if the context ends.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// A budget keeps the retries of a client a fraction of its traffic, so that an
// outage is not met with a multiple of the load: every retry costs, every
// success at the first attempt earns. A full budget lets a client that was idle
// retry at once; while everything fails, it soon behaves as if retries were off.
type budget struct {
	mu     sync.Mutex
	tokens int
}

// With these a client has a hundred retries to begin with, and then one for five calls
// that succeed at once. A retry that helps is paid back.
const (
	budgetFull    = 500
	costRetry     = 5
	costTimeout   = 10 // a timeout costs the service more than a quick refusal
	earnedByCall  = 1
	costFreshAuth = 0 // a fresh token is no more load, and an old one would fail every call
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
