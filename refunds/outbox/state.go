package outbox

import (
	"context"
	"slices"
	"time"
)

// A State is what is known of a refund. The README says what leads where.
type State string

// The states of a refund.
const (
	Pending  State = "pending"  // to be sent
	Sending  State = "sending"  // its request may be on the wire
	Accepted State = "accepted" // the service has it
	Rejected State = "rejected" // the service does not have it, and it is not to be sent again
	Unknown  State = "unknown"  // the service may have it; nothing is sent until somebody decides
)

// An event is what happens to a refund: what a worker sees, or a Verdict.
type event string

// What a worker sees.
const (
	eventBegun    event = "a worker begins"
	eventAccepted event = "2xx"
	eventRefused  event = "refused"
	eventUnsent   event = "not sent"
	eventDoubted  event = "no clear response"
)

// A transition is one line of the state machine.
type transition struct {
	event event
	from  []State
	to    State
	// inDoubt replaces to while an earlier attempt may have been recorded. A refusal
	// of a later attempt says nothing about the earlier one: the service may refuse it
	// because it has the refund.
	inDoubt State
}

// transitions is the state machine: nothing else changes a state. A worker's events in
// the state unknown come late, from a worker that was taken for dead.
var transitions = []transition{
	{eventBegun, []State{Pending}, Sending, Sending},

	{eventAccepted, []State{Sending, Unknown}, Accepted, Accepted},
	{eventRefused, []State{Sending, Unknown}, Rejected, Unknown},
	{eventUnsent, []State{Sending, Unknown}, Pending, Pending},
	{eventDoubted, []State{Sending}, Unknown, Unknown},

	// A notice can come before the response to the request that it is about.
	{event(Recorded), []State{Unknown, Pending, Sending}, Accepted, Accepted},
	{event(NotRecorded), []State{Unknown}, Pending, Pending},
	{event(Resubmit), []State{Unknown, Rejected}, Pending, Pending},
	{event(Closed), []State{Unknown, Pending}, Rejected, Rejected},
}

// target returns the state that an event leads to, or "" if there is no such transition.
func target(from State, e event, doubtful bool) State {
	for _, t := range transitions {
		if t.event == e && slices.Contains(t.from, from) {
			if doubtful {
				return t.inDoubt
			}
			return t.to
		}
	}
	return ""
}

// doubtAfter tells whether, after an event, an attempt before the next one may have been recorded.
// Who says that the service does not have a refund speaks of all its attempts.
func doubtAfter(doubtful bool, from State, e event) bool {
	switch {
	case e == event(NotRecorded):
		return false
	case e == event(Resubmit) && from == Unknown:
		return true
	}
	return doubtful
}

// A claim is an attempt: a refund that a worker has marked as sending.
type claim struct {
	Row      int64 `db:"id"`
	Account  string
	Content  []byte
	Attempt  int `db:"attempts"`
	Doubtful bool
	wait     time.Duration // until another attempt, after this one
}

// take marks a refund as sending and returns its claim, or nil if it is not to be sent
// now. When take returns, the mark is committed: a worker that finds it later without
// an outcome knows that the request may have left.
//
// Records of one refund_id go in the order of their rows, one at a time, and none
// overtakes one that is unknown.
func take(ctx context.Context, db session, row int64) (*claim, error) {
	return one[*claim](ctx, db, `
		UPDATE outbox_refund SET state = $2, attempts = attempts + 1, sent_at = `+db.clock(0)+`
		WHERE id = $1 AND state = $3 AND next_at <= `+db.clock(0)+` AND NOT EXISTS (
			SELECT 1 FROM outbox_refund AS other
			WHERE other.account = outbox_refund.account AND other.refund_id = outbox_refund.refund_id AND other.id <> outbox_refund.id
			AND (other.state IN ('sending', 'unknown') OR other.state = 'pending' AND other.id < outbox_refund.id))
		RETURNING id, account, content, attempts, doubtful`, row, target(Pending, eventBegun, false), Pending)
}

// overdue is true of a refund whose mark is so old that its request is over: nobody has written
// its outcome down, most likely because the process is dead. For all who read, it is unknown.
func overdue(db session) string {
	return "(state = 'sending' AND sent_at <= " + db.clock(-submitTimeout) + ")"
}

// move makes the transition of an event about an attempt, and keeps what the service said
// with it, if anything. It reports false if there is no such transition, or if the refund
// has another state or another attempt by now.
func move(ctx context.Context, db session, c *claim, from State, e event, said *response) (bool, error) {
	to := target(from, e, c.Doubtful)
	if to == "" {
		return false, nil
	}
	set, args := "state = $4", []any{c.Row, c.Attempt, from, to}
	if doubtAfter(false, from, e) {
		set += ", doubtful = TRUE"
	} else if !doubtAfter(true, from, e) {
		set += ", doubtful = FALSE"
	}
	if said != nil {
		set += ", reason = $5, request_id = $6, status = $7, content_type = $8, body = $9"
		args = append(args, said.reason, said.requestID, said.status, said.contentType, said.body)
	}
	if to == Pending {
		next := "''"
		if c.wait > 0 {
			next = db.clock(c.wait)
		}
		set += ", next_at = " + next
	}
	state := "state = $3"
	if from == Unknown {
		state = "(state = $3 OR " + overdue(db) + ")"
	}
	n, err := db.exec(ctx, `UPDATE outbox_refund SET `+set+` WHERE id = $1 AND attempts = $2 AND `+state, args...)
	return n == 1, err
}

// settle makes the transition of a verdict about an attempt, and keeps who said so and why.
func (o *Outbox) settle(ctx context.Context, c *claim, from State, v Verdict, by, why string) (done bool, err error) {
	err = o.transact(ctx, func(tx session) (err error) {
		done, err = settle(ctx, tx, c, from, v, by, why)
		return err
	})
	return done && err == nil, err
}

func settle(ctx context.Context, tx session, c *claim, from State, v Verdict, by, why string) (done bool, err error) {
	if done, err = move(ctx, tx, c, from, event(v), nil); err != nil || !done {
		return false, err
	}
	return true, keep(ctx, tx, c, string(v), by, why)
}

// keep writes down what somebody said about an attempt.
func keep(ctx context.Context, tx session, c *claim, what, by, why string) error {
	_, err := tx.exec(ctx, `INSERT INTO outbox_decision (refund, attempt, decided_at, who, what, note) VALUES ($1, $2, `+tx.clock(0)+`, $3, $4, $5)`,
		c.Row, c.Attempt, by, what, why)
	return err
}
