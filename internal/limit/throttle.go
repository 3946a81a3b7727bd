package limit

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/carddata/carddata-go/internal/await"
	"github.com/carddata/carddata-go/internal/fault"
	"golang.org/x/time/rate"
)

// The packages that take a Limiter declare it with the same method.
type Limiter interface {
	Wait(ctx context.Context) error
}

// A Throttle holds back every attempt of a client during a cooldown. The service asks for one
// with Retry-After on a 429 or 503. It applies to all calls: each would get the same answer,
// and its request would add to the overload.
type Throttle struct {
	mu          sync.Mutex
	cooldownEnd time.Time
	paused      bool // nothing was sent since the cooldown began
}

// Cooldown extends the cooldown to d from now, and never shortens it. It reports whether to
// log it. Requests that are refused together extend it only slightly, and are logged once.
func (t *Throttle) Cooldown(d time.Duration) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if end := time.Now().Add(d); end.After(t.cooldownEnd) {
		news = !t.paused || end.Sub(t.cooldownEnd) >= time.Second
		t.cooldownEnd, t.paused = end, true
	}
	return news
}

// Resumes reports the end of a cooldown once.
func (t *Throttle) Resumes() (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	news = t.paused
	t.paused = false
	return news
}

func (t *Throttle) End() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cooldownEnd
}

func (t *Throttle) Remaining() time.Duration { return max(0, time.Until(t.End())) }

// Wait returns when the cooldown is over and the limiter lets the attempt go. If the deadline
// comes first, it fails at once, so that the caller can do something else and leaves its
// place in the queue free.
//
// patience bounds the wait for a limiter that may hang; 0: nothing does. It does not apply to a rate.Limiter,
// which cannot hang and would refuse a longer wait at once.
func (t *Throttle) Wait(ctx context.Context, l Limiter, jitter await.Jitter, patience time.Duration) (stopped *fault.Verdict, err error) {
	for {
		if left := t.Remaining(); left > 0 {
			if err := waitCooldown(ctx, jitter, left); err != nil {
				return fault.Paused, err
			}
		}
		if l != nil {
			if stopped, err := waitLimiter(ctx, l, patience); err != nil {
				return stopped, err
			}
		}
		// A cooldown may have begun while this attempt queued for the limiter.
		if t.Remaining() == 0 {
			return nil, nil
		}
	}
}

func waitLimiter(ctx context.Context, l Limiter, patience time.Duration) (stopped *fault.Verdict, err error) {
	bounded := ctx
	if own, ok := l.(*rate.Limiter); ok {
		err = own.Wait(ctx)
	} else {
		if patience > 0 {
			var cancel context.CancelFunc
			bounded, cancel = context.WithTimeout(ctx, patience)
			defer cancel()
		}
		_, _, err = await.Call(bounded, func() (struct{}, error) { return struct{}{}, l.Wait(bounded) })
	}
	switch {
	case err == nil:
		return nil, nil
	case bounded.Err() != nil && ctx.Err() == nil:
		return fault.LimiterRefused, fault.NewError("the limiter did not return in time", fault.ErrLocalLimit)
	}
	return limiterRefusal(ctx, l, err)
}

// errNoTurn marks a refusal that every further call would get, too.
var errNoTurn = errors.New("no further call can be sent")

var ErrCooldown = fault.NewError(fault.Paused.Text+" beyond this call's deadline", fault.ErrRateLimited, errNoTurn, context.DeadlineExceeded)

func waitCooldown(ctx context.Context, jitter await.Jitter, left time.Duration) error {
	// Spread the calls that waited together over an eighth of the wait, or over the rest of
	// the time before the deadline.
	spread := left/8 + time.Millisecond
	if deadline, ok := ctx.Deadline(); ok {
		spare := time.Until(deadline) - left
		if spare <= 0 {
			return ErrCooldown
		}
		spread = min(spread, spare/2+1)
	}
	if await.Sleep(ctx, left+jitter.Draw(ctx, spread)) != nil {
		return fault.ErrPaused // the context says what ended the wait
	}
	return nil
}

// limiterRefusal says that the refusal is local. x/time/rate refuses a wait beyond the
// deadline with an error that is not context.DeadlineExceeded, so add it. The errors of other
// limiters are unknown.
func limiterRefusal(ctx context.Context, l Limiter, err error) (stopped *fault.Verdict, _ error) {
	stopped = fault.LimiterRefused
	if ctxErr := ctx.Err(); ctxErr != nil {
		return stopped, ctxErr
	}
	causes := []error{fault.ErrLocalLimit, err}
	if r, ok := l.(*rate.Limiter); ok && r.Burst() == 0 {
		causes = []error{fault.ErrLocalLimit, errNoTurn, err} // it never lets a call through
	} else if ok {
		causes = []error{fault.ErrLocalLimit, errNoTurn, context.DeadlineExceeded, err}
		stopped = fault.TurnTooLate
	}
	return stopped, fault.NewError(stopped.Text, causes...)
}

// NoTurn reports that a limit or a pause lets no further call through, at least before the
// deadline.
func NoTurn(err error) bool { return fault.IsDirect(err, errNoTurn) }
