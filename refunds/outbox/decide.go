package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// A Verdict is what somebody says about a refund.
type Verdict string

// What somebody can say. A verdict that is not true does harm: Recorded of a refund that
// the service does not have loses it, NotRecorded or Resubmit of one that it has may double it.
const (
	// Recorded: the service has it. Unknown, Pending or Sending becomes Accepted.
	Recorded Verdict = "accepted"
	// NotRecorded: the service has none of its attempts. Unknown is sent again, and what becomes
	// of that attempt counts.
	NotRecorded Verdict = "not recorded"
	// Resubmit: the service had better get it twice than not at all. Unknown or Rejected is sent
	// again. An earlier attempt stays in doubt: if this one is refused, it is Unknown again.
	Resubmit Verdict = "resubmit"
	// Closed: the service does not have it, and is not to get it. Unknown or Pending becomes
	// Rejected.
	Closed Verdict = "closed"
)

// Why nothing is decided about a refund.
var (
	// ErrTooEarly: the request can still leave. Decide a minute after it was sent.
	ErrTooEarly = errors.New("its request can still leave")
	// ErrState: there is no such decision about a refund in its state, or the state has
	// changed since the refund was listed. List it again.
	ErrState = errors.New("there is no such decision about it")
)

// Decide records a verdict about refunds as they were listed, and returns how many it
// decided. The error names each of the others by its row, with [ErrTooEarly], [ErrState] or
// an error of the database; what is decided stays decided. A decision about an attempt is
// never one about a later attempt. by is who says so, and is required. It is kept with why in
// the table outbox_decision.
func (o *Outbox) Decide(ctx context.Context, entries []Entry, v Verdict, by, why string) (decided int, err error) {
	switch {
	case !slices.Contains([]Verdict{Recorded, NotRecorded, Resubmit, Closed}, v): // it could be another event
		return 0, fmt.Errorf("outbox: %q is no verdict", v)
	case by == "":
		return 0, errors.New("outbox: who decides? Name somebody")
	}
	if err := o.check(ctx); err != nil {
		return 0, err
	}
	var left []error
	for _, e := range entries {
		if err := o.decide(ctx, e, v, by, why); err != nil {
			left = append(left, fmt.Errorf("outbox: row %d: %w", e.Row, err))
		} else {
			decided++
		}
	}
	return decided, errors.Join(left...)
}

func (o *Outbox) decide(ctx context.Context, e Entry, v Verdict, by, why string) error {
	if e.State == Unknown && v != Recorded {
		if err := requestOver(ctx, o, e); err != nil {
			return err
		}
	}
	if e.State == Rejected {
		corrected, err := one[bool](ctx, o, `SELECT EXISTS (SELECT 1 FROM outbox_refund WHERE state <> 'rejected'
			AND account = $1 AND refund_id = $2 AND id > $3)`, e.AccountID, e.RefundID, e.Row)
		if err != nil {
			return err
		}
		if corrected {
			return fmt.Errorf("%w: a later record of the refund_id corrected it", ErrState)
		}
	}
	done, err := o.settle(ctx, &claim{Row: e.Row, Attempt: e.Attempts}, e.State, v, by, why)
	if done || err != nil {
		return err
	}
	now, err := one[string](ctx, o, `SELECT state FROM outbox_refund WHERE id = $1`, e.Row)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %q of a refund that was %s, and is %s", ErrState, v, e.State, now)
}

// requestOver fails with ErrTooEarly while the request of a refund can still leave.
func requestOver(ctx context.Context, s session, e Entry) error {
	now, err := readClock(ctx, s)
	if end := e.LastSent.Add(submitTimeout); err == nil && now.Before(end) {
		err = fmt.Errorf("%w until %s", ErrTooEarly, timeText(end))
	}
	return err
}
