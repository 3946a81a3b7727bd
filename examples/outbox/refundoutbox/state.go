package refundoutbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A State is what is known of a refund.
type State string

// The states of a refund.
const (
	Pending  State = "pending"  // to be sent
	Sending  State = "sending"  // the marker, committed before the request leaves
	Accepted State = "accepted" // the service has it
	Rejected State = "rejected" // the service does not have it, and is not to get it
	Unknown  State = "unknown"  // the service may have it
	Absent   State = "absent"   // the service said that it does not have it; not sent again by itself
)

// An Event is what happens to a refund.
type Event string

// What a worker sees.
const (
	eventBegun    Event = "a worker begins"
	eventAccepted Event = "2xx"
	eventRefused  Event = "refused"
	eventUnsent   Event = "not sent"
	eventDoubted  Event = "no clear response"
	eventConflict Event = "conflict" // unlike eventDoubted, it is not worth another attempt
)

// What the service's report or its lookup says.
const (
	eventFound       Event = "found"
	eventNotFound    Event = "not found"
	eventAbsentTwice Event = "not found twice"
)

// What a person decides.
const (
	DecideAccepted    Event = "accepted"     // the service has it
	DecideNotRecorded Event = "not recorded" // the service does not have it: send it
	DecideResubmit    Event = "resubmit"     // send it, although the service may have it
	DecideClosed      Event = "closed"       // the service does not have it, and is not to get it
)

// A transition is one line of the state machine.
type transition struct {
	event Event
	from  []State
	to    State
	// inDoubt replaces to while an earlier attempt may have been recorded. A refusal
	// of a later attempt says nothing about the earlier one: the service may well
	// refuse it because it has the refund.
	inDoubt State
}

// transitions is the state machine: nothing else changes a state. Events of a
// worker that meet another state than sending come late, from a worker that was
// taken for dead.
var transitions = []transition{
	{eventBegun, []State{Pending}, Sending, Sending},

	{eventAccepted, []State{Sending, Unknown, Absent, Pending}, Accepted, Accepted},
	{eventRefused, []State{Sending, Unknown}, Rejected, Unknown},
	{eventRefused, []State{Absent}, Rejected, Absent},
	{eventUnsent, []State{Sending}, Pending, Pending},
	{eventUnsent, []State{Unknown}, Pending, Unknown},
	{eventDoubted, []State{Sending}, Unknown, Unknown},
	{eventConflict, []State{Sending}, Unknown, Unknown},

	{eventFound, []State{Unknown, Absent, Pending}, Accepted, Accepted},
	{eventNotFound, []State{Unknown}, Absent, Absent},
	{eventAbsentTwice, []State{Absent}, Pending, Pending},

	{DecideAccepted, []State{Unknown, Absent}, Accepted, Accepted},
	{DecideNotRecorded, []State{Unknown, Absent}, Pending, Pending},
	{DecideResubmit, []State{Unknown, Absent, Rejected}, Pending, Pending},
	{DecideClosed, []State{Unknown, Absent, Pending}, Rejected, Rejected},
}

func find(from State, event Event) transition {
	for _, t := range transitions {
		if t.event == event && slices.Contains(t.from, from) {
			return t
		}
	}
	return transition{}
}

// Possible tells whether the state machine has an event for a state.
func Possible(from State, event Event) bool { return find(from, event).to != "" }

// A claim is a refund that a worker has marked as sending.
type claim struct {
	Row     int64 `db:"id"`
	Account string
	Content []byte
	Attempt int       `db:"attempts"`
	marked  time.Time // a little before the marker was committed
}

// take marks a refund as sending, and returns its claim, or nil if it is not to be
// sent now. When take returns, the marker is committed: whoever finds it later,
// without an outcome, knows that the request may have left.
//
// Records of one refund_id go in the order of their rows, one at a time, and none
// passes one that is unknown or absent.
func take(ctx context.Context, db Session, row int64, worker string) (*claim, error) {
	now := time.Now()
	c, err := one[*claim](ctx, db, `
		UPDATE outbox_refund SET state = $4, attempts = attempts + 1, worker = $2, sent_at = $3, changed_at = $3,
			first_sent_at = CASE WHEN first_sent_at = '' THEN $3 ELSE first_sent_at END
		WHERE id = $1 AND state = $5 AND NOT EXISTS (
			SELECT 1 FROM outbox_refund AS other
			WHERE other.account = outbox_refund.account AND other.refund_id = outbox_refund.refund_id AND other.id <> outbox_refund.id
			AND (other.state IN ('sending', 'unknown', 'absent') OR other.state = 'pending' AND other.id < outbox_refund.id))
		RETURNING id, account, content, attempts`, row, worker, timeText(now), find(Pending, eventBegun).to, Pending)
	if c != nil {
		c.marked = now
	}
	return c, err
}

// inDoubtToo ends the reason of a refund that was sent again.
const inDoubtToo = "; an earlier attempt is in doubt"

// move makes the transition that the state machine has for an event, and keeps what
// the service said with it, if anything. It reports false if the refund has another
// state or another attempt by then.
func move(ctx context.Context, db Session, row int64, attempt int, from State, event Event, said *response) (bool, error) {
	t := find(from, event)
	if t.to == "" {
		return false, fmt.Errorf("outbox: a refund that is %s cannot become %q", from, event)
	}
	set, args := "changed_at = $6", []any{row, attempt, from, t.to, t.inDoubt, timeText(time.Now())}
	switch event {
	case eventDoubted, eventConflict:
		set += ", doubtful = CASE WHEN doubtful = 0 THEN attempts ELSE doubtful END"
	case eventRefused, eventUnsent: // this attempt is not in doubt
		set += ", doubtful = CASE WHEN doubtful = attempts THEN 0 ELSE doubtful END"
	}
	if said != nil {
		set += ", status_code = $7, reason = CASE WHEN doubtful IN (0, attempts) THEN $8 ELSE $11 END, message = $9, request_id = $10"
		args = append(args, said.status, said.reason, said.message, said.requestID, strings.TrimPrefix(said.reason+inDoubtToo, "; "))
	}
	n, err := db.Exec(ctx, `UPDATE outbox_refund SET `+set+`, state = CASE WHEN doubtful IN (0, attempts) THEN $4 ELSE $5 END
		WHERE id = $1 AND attempts = $2 AND state = $3`, args...)
	return n == 1, err
}

// A Decision is somebody's word on a refund.
type Decision struct {
	Who  string
	What Event
	Note string
}

// What else stands in the log of decisions.
const (
	lateResponse  Event = "late response"                   // the state was unknown, absent or pending
	afterDecision Event = "late response, after a decision" // for a person to look at
	Seen          Event = "seen"                            // a person did
)

func note(ctx context.Context, db Session, row int64, attempt int, d Decision) error {
	_, err := db.Exec(ctx, `INSERT INTO outbox_decision (refund, attempt, decided_at, who, what, note) VALUES ($1, $2, $3, $4, $5, $6)`,
		row, attempt, timeText(time.Now()), d.Who, d.What, d.Note)
	return err
}

// settle makes the transition of an event, logs on whose word, and gives jobs to what
// can go on after it. It reports false if the refund has another state by then.
func settle(ctx context.Context, tx Tx, row int64, attempt int, from State, event Event, said *response, word Decision) (bool, error) {
	done, err := move(ctx, tx, row, attempt, from, event, said)
	if err != nil || !done {
		return false, err
	}
	if err := note(ctx, tx, row, attempt, word); err != nil {
		return false, err
	}
	return true, wake(ctx, tx, row)
}

// wake gives jobs to the pending records of a refund_id.
func wake(ctx context.Context, tx Tx, row int64) error {
	rows, err := all[int64](ctx, tx, `SELECT other.id FROM outbox_refund AS this
		JOIN outbox_refund AS other ON other.account = this.account AND other.refund_id = this.refund_id
		WHERE this.id = $1 AND other.state = 'pending' ORDER BY other.id`, row)
	if err != nil {
		return err
	}
	return insertJobs(ctx, tx, rows)
}
