package transport

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// A Limiter is declared anew, with the same method, in the packages that take
// one.
type Limiter interface {
	Wait(ctx context.Context) error
}

// A gate holds every attempt of a client back while the service has asked for
// a pause.
type gate struct{ until atomic.Int64 }

// pause extends the pause to d from now.
func (g *gate) pause(d time.Duration) {
	until := time.Now().Add(d).UnixNano()
	for {
		old := g.until.Load()
		if until <= old || g.until.CompareAndSwap(old, until) {
			return
		}
	}
}

func (g *gate) remaining() time.Duration {
	until := g.until.Load()
	if until == 0 {
		return 0
	}
	return max(0, time.Until(time.Unix(0, until)))
}

// pass waits for the end of a pause and for leave of the limiter. A wait that
// the deadline cannot outlast is refused at once.
func (g *gate) pass(ctx context.Context, l Limiter) error {
	for {
		if err := g.waitPause(ctx); err != nil {
			return err
		}
		if l != nil {
			if err := l.Wait(ctx); err != nil {
				return limiterRefusal(ctx, l, err)
			}
		}
		// The pause may have been asked for while this attempt queued.
		if g.remaining() == 0 {
			return nil
		}
	}
}

var errPaused = because("the service asked all calls to pause beyond this call's deadline",
	ErrLocalLimit, context.DeadlineExceeded)

// Paused is the failure of a call that a pause would outlast, for one that waits
// for the answer to another call; or nil.
func (c *Client) Paused(ctx context.Context, operation string) *Failure {
	left := c.gate.remaining()
	if deadline, ok := ctx.Deadline(); !ok || left == 0 || time.Until(deadline) > left {
		return nil
	}
	return &Failure{Operation: operation, RetryAfter: left, Err: errPaused}
}

func (g *gate) waitPause(ctx context.Context) error {
	left := g.remaining()
	if left == 0 {
		return nil
	}
	// Those who waited together must not all set off together.
	spread := left/8 + time.Millisecond
	if deadline, ok := ctx.Deadline(); ok {
		spare := time.Until(deadline) - left
		if spare <= 0 {
			return errPaused
		}
		spread = min(spread, spare/2+1)
	}
	return Sleep(ctx, left+rand.N(spread))
}

// limiterRefusal says that the refusal is local. x/time/rate refuses a wait
// beyond the deadline with an error that is not context.DeadlineExceeded.
func limiterRefusal(ctx context.Context, l Limiter, err error) error {
	if ctxErr := ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	is := []error{ErrLocalLimit, err}
	if r, ok := l.(*rate.Limiter); ok && r.Burst() > 0 && !errors.Is(err, context.DeadlineExceeded) {
		is = append(is, context.DeadlineExceeded)
	}
	return because("the local rate limiter gave no leave to send", is...)
}
