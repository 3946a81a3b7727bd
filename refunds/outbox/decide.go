package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Verdict is what somebody says about a refund.
type Verdict string

// What somebody can say. A verdict that is not true does harm: Recorded of a refund that
// the service does not have loses it, NotRecorded and Resubmit of one that it has send it
// twice.
const (
	Recorded    Verdict = "accepted"     // the service has it: Unknown or Absent becomes Accepted
	NotRecorded Verdict = "not recorded" // the service does not have it: Unknown or Absent is sent again
	Resubmit    Verdict = "resubmit"     // nobody knows, or what was wrong is corrected: Unknown, Absent or Rejected is sent again
	Closed      Verdict = "closed"       // the service does not have it, and is not to get it: Unknown, Absent or Pending becomes Rejected
	Seen        Verdict = "seen"         // no decision: somebody looked at the late responses of the refund
)

// The reasons of a [RowError].
var (
	// ErrTooEarly: the request can still leave. Decide a minute after it was sent.
	ErrTooEarly = errors.New("its request can still leave")
	// ErrState: there is no such decision about a refund in its state, or the state has
	// changed since the refund was listed. List it again.
	ErrState = errors.New("there is no such decision about it")
)

// A RowError says why nothing was decided about a refund.
type RowError struct {
	Row int64 // Entry.Row
	Err error // wraps ErrTooEarly or ErrState, or is an error of the database
}

// Error returns the text.
func (e *RowError) Error() string { return fmt.Sprintf("outbox: row %d: %v", e.Row, e.Err) }

// Unwrap returns Err.
func (e *RowError) Unwrap() error { return e.Err }

// Decide records a verdict about refunds as they were listed, and returns how many it
// decided. The error joins a [*RowError] for each of the others; what is decided stays
// decided. A decision about an attempt is never one about a later attempt. v is one of the
// constants. by is who says so, and is required; why stands in the log.
func (o *Outbox) Decide(ctx context.Context, entries []Entry, v Verdict, by, why string) (decided int, err error) {
	if !slices.Contains([]Verdict{Recorded, NotRecorded, Resubmit, Closed, Seen}, v) { // it could be another event
		return 0, fmt.Errorf("outbox: %q is no verdict", v)
	}
	var choices []choice
	for _, e := range entries {
		choices = append(choices, choice{Entry: e, event: event(v)})
	}
	return o.apply(ctx, choices, by, why)
}

// A choice is an event for an entry.
type choice struct {
	Entry
	event event
	until time.Time // of a report that does not have it
}

// apply makes the transitions of choices, some at a time.
func (o *Outbox) apply(ctx context.Context, choices []choice, by, why string) (done int, err error) {
	if by == "" {
		return 0, errors.New("outbox: who decides? Name somebody")
	}
	if err := o.check(ctx); err != nil {
		return 0, err
	}
	var left []error
	for batch := range slices.Chunk(choices, 100) {
		var refused []error
		err := o.transact(ctx, func(tx session) error {
			for _, c := range batch {
				wrong, err := o.decide(ctx, tx, c, by, why)
				if err == nil && wrong == nil && c.event == eventNotFound {
					_, err = tx.exec(ctx, `UPDATE outbox_refund SET absent_until = $2 WHERE id = $1`, c.Row, timeText(c.until))
				}
				if err != nil {
					return err
				}
				if wrong != nil {
					refused = append(refused, &RowError{c.Row, wrong})
				}
			}
			return nil
		})
		if err != nil {
			refused = nil
			for _, c := range batch {
				refused = append(refused, &RowError{c.Row, err})
			}
		}
		done += len(batch) - len(refused)
		left = append(left, refused...)
	}
	return done, errors.Join(left...)
}

// decide makes the transition of a choice, or says why there is none.
func (o *Outbox) decide(ctx context.Context, tx session, c choice, by, why string) (wrong, err error) {
	if c.event == event(Seen) {
		waiting, err := one[bool](ctx, tx, `SELECT COUNT(*) > 0`+lateResponses+` AND refund = $1`, c.Row)
		if err == nil && !waiting {
			return fmt.Errorf("%w: no late response of it waits to be seen", ErrState), nil
		}
		if err == nil {
			err = note(ctx, tx, c.Row, 0, c.event, by, why)
		}
		return nil, err
	}
	if !possible(c.State, c.event) {
		return fmt.Errorf("%w: it is %s, which cannot be %q", ErrState, c.State, c.event), nil
	}
	over := c.LastSent.Add(submitTimeout)
	if c.State == Unknown && c.event != event(Recorded) && c.event != eventFound && time.Now().Before(over) {
		return fmt.Errorf("%w until %s", ErrTooEarly, timeText(over)), nil
	}
	if c.State == Rejected {
		corrected, err := one[bool](ctx, tx, `SELECT `+superseded+` FROM outbox_refund AS this WHERE id = $1`, c.Row)
		if err != nil {
			return nil, err
		}
		if corrected {
			return fmt.Errorf("%w: a later record of the refund_id corrected it", ErrState), nil
		}
	}
	done, err := o.settle(ctx, tx, c.Row, c.Attempts, c.State, c.event, nil, c.event, by, why)
	if done || err != nil {
		return nil, err
	}
	now, err := one[string](ctx, tx, `SELECT state FROM outbox_refund WHERE id = $1`, c.Row)
	return fmt.Errorf("%w: it was %s, and is %s", ErrState, c.State, cmp.Or(now, "not there")), err
}

// A Decision is a line of the log: who settled a refund or had it sent again, and why. Late
// responses stand there, too.
type Decision struct {
	At        time.Time // when
	By        string    // who decided, or the name of the worker
	What      string    // a Verdict, what a report said, or that a response came late
	Why       string    // as given to Decide or Apply
	Row       int64     // Entry.Row
	AccountID string    // the refund's
	RefundID  string    // the refund's
	Attempt   int       // the attempt that was decided about
}

// Decisions returns the log, the latest line first, all at once.
func (o *Outbox) Decisions(ctx context.Context) ([]Decision, error) {
	if err := o.check(ctx); err != nil {
		return nil, err
	}
	rows, err := all[struct {
		Decision  `db:""`
		DecidedAt string
	}](ctx, o, `SELECT decided_at, who AS "by", what, note AS why, r.id AS "row", account AS account_id, refund_id, attempt
		FROM outbox_decision AS d JOIN outbox_refund AS r ON r.id = d.refund ORDER BY d.id DESC`)
	if err != nil {
		return nil, fmt.Errorf("outbox: decisions: %w", err)
	}
	decisions := make([]Decision, len(rows))
	for i, r := range rows {
		decisions[i] = r.Decision
		decisions[i].At = parseTime(r.DecidedAt)
	}
	return decisions, nil
}
