package faults

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

// patience is how long a caller waits. Zero values mean without end.
type patience struct {
	start    time.Duration // of the call
	deadline time.Duration
	cancel   time.Duration
}

func drawPatience(c chance) patience {
	p := patience{start: c.within(6 * time.Second)}
	if c.percent(20) {
		p.start = c.within(time.Second / 100)
	}
	switch c.IntN(5) {
	case 0, 1:
		p.deadline = 1 + c.within(40*time.Second)
	case 2, 3:
		p.deadline = time.Minute + c.within(4*time.Minute)
	}
	if c.percent(20) {
		p.cancel = c.within(20 * time.Second)
	}
	return p
}

// A call is one use of the library.
type call struct {
	w     *world
	name  string
	began time.Time
	ctx   context.Context
	ends  time.Time // by which it must return; zero: not known

	concurrency int  // of its requests
	attempts    int  // so far, if it makes one after the other
	beginnings  int  // how often it may ask anew for the same
	shared      bool // its requests are those of others, too, and may outlive it
	left        bool // its loop

	held  time.Time // until when the caller's own loop or input held it
	threw bool      // a part did, in it
}

func (c *call) String() string {
	if c == nil {
		return "a shared request"
	}
	return c.name
}

type callKey struct{}

// callOf is the call that a request belongs to, nil if it is shared.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	if c != nil && c.shared {
		return nil
	}
	return c
}

// call begins a call when its caller wants to. own is the bound that the library
// puts on it when its context has no deadline.
func (w *world) call(name string, p patience, own time.Duration) (context.Context, *call, context.CancelFunc) {
	time.Sleep(p.start)
	c := &call{w: w, name: name, began: time.Now(), concurrency: 1, beginnings: 1}
	ctx := context.WithValue(context.Background(), callKey{}, c)
	cancels := make([]context.CancelFunc, 0, 2)
	limit := own
	if p.deadline > 0 {
		limit = p.deadline
		deadline, cancel := context.WithTimeout(ctx, p.deadline)
		ctx, cancels = deadline, append(cancels, cancel)
	}
	if p.cancel > 0 {
		cancelable, cancel := context.WithCancel(ctx)
		timer := time.AfterFunc(p.cancel, cancel)
		ctx, cancels = cancelable, append(cancels, func() { timer.Stop(); cancel() })
		if limit == 0 || p.cancel < limit {
			limit = p.cancel
		}
	}
	if limit > 0 {
		c.ends = c.began.Add(limit)
	}
	c.ctx = ctx
	w.note("%s: begins: %s", c, set(p))
	return ctx, c, func() {
		for _, cancel := range cancels {
			cancel()
		}
	}
}

// returned checks what holds for every call.
func (c *call) returned(err error, attempts int) {
	c.w.note("%s: returned %v", c, err)
	if now := time.Now(); !c.ends.IsZero() && now.After(c.ends) && !c.isHeld(now) {
		c.w.violate(overdue, "%s: %v after its end", c, now.Sub(c.ends))
	}
	if errors.Is(err, context.Canceled) && !errors.Is(c.ctx.Err(), context.Canceled) {
		c.w.violate(untyped, "%s: canceled, and not by its caller: %v", c, err)
	}
	c.leavesNothing()
	if attempts >= 0 {
		sent := 0
		for _, j := range c.w.wire.of(c) {
			sent += j.sent
		}
		if sent != attempts {
			c.w.violate(miscounted, "%s: %d attempts reported, %d made", c, attempts, sent)
		}
	}
}

// conditions are those that a failure of any operation can match.
var conditions = []error{
	bins.ErrInvalidArgument, bins.ErrLocalLimit, bins.ErrCredential, bins.ErrNoResponse, bins.ErrTimeout, bins.ErrBadRequest,
	bins.ErrUnauthorized, bins.ErrForbidden, bins.ErrNotFound, bins.ErrTooLarge, bins.ErrRateLimited,
	bins.ErrServer, bins.ErrBadResponse, context.Canceled, context.DeadlineExceeded,
	refunds.ErrSuspended, updater.ErrChanged, updater.ErrUnverified, updater.ErrNotReady,
}

func hasCondition(err error) bool {
	return slices.ContainsFunc(conditions, func(condition error) bool { return errors.Is(err, condition) })
}

// checkError finds a failure without the type of its package or without a condition.
func checkError[E error](c *call, err error) {
	if e, ok := errors.AsType[E](err); !ok || !hasCondition(e) && !c.isThrown(err) {
		c.w.violate(untyped, "%s: %T: %v", c, err, err)
	}
}

// attemptsOf is the number of attempts that an error reports, -1 if it reports none.
func attemptsOf(err error) int {
	if e, ok := errors.AsType[*bins.Error](err); ok {
		return e.Attempts
	}
	if e, ok := errors.AsType[*refunds.Error](err); ok {
		return e.Attempts
	}
	if e, ok := errors.AsType[*updater.Error](err); ok {
		return e.Attempts
	}
	return -1
}
