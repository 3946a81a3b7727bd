package outbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A State is what is known of a refund. The README has all transitions.
type State string

// The states of a refund.
const (
	Pending  State = "pending"  // to be sent
	Sending  State = "sending"  // a worker marked it: its request may be on the wire
	Accepted State = "accepted" // the service has it
	Rejected State = "rejected" // the service does not have it, and it is not to be sent again
	Unknown  State = "unknown"  // the service may have it; nothing is sent until somebody decides
	Absent   State = "absent"   // the service said that it does not have it; as Unknown
)

// An event is what happens to a refund.
type event string

// What a worker sees.
const (
	eventBegun    event = "a worker begins"
	eventAccepted event = "2xx"
	eventRefused  event = "refused"
	eventUnsent   event = "not sent"
	eventDoubted  event = "no clear response"
	eventConflict event = "conflict" // unlike eventDoubted, another attempt would settle nothing
)

// What the service's report says.
const (
	eventFound       event = "found"
	eventNotFound    event = "not found"
	eventAbsentTwice event = "not found twice"
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
// other states than sending come late, from a worker that was taken for dead.
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

	{event(Recorded), []State{Unknown, Absent}, Accepted, Accepted},
	{event(NotRecorded), []State{Unknown, Absent}, Pending, Pending},
	{event(Resubmit), []State{Unknown, Absent, Rejected}, Pending, Pending},
	{event(Closed), []State{Unknown, Absent, Pending}, Rejected, Rejected},
}

// find returns the transition of an event in a state, or the zero transition.
func find(from State, e event) transition {
	for _, t := range transitions {
		if t.event == e && slices.Contains(t.from, from) {
			return t
		}
	}
	return transition{}
}

// possible tells whether the state machine has an event for a state.
func possible(from State, e event) bool { return find(from, e).to != "" }

// A claim is a refund that a worker has marked as sending.
type claim struct {
	Row     int64 `db:"id"`
	Account string
	Content []byte
	Attempt int `db:"attempts"`
}

// take marks a refund as sending and returns its claim, or nil if it is not to be sent
// now. When take returns, the mark is committed: a worker that finds it later without
// an outcome knows that the request may have left.
//
// Records of one refund_id go in the order of their rows, one at a time, and none
// overtakes one that is unknown or absent.
func take(ctx context.Context, db session, row int64, worker string) (*claim, error) {
	return one[*claim](ctx, db, `
		UPDATE outbox_refund SET state = $4, attempts = attempts + 1, worker = $2, sent_at = $3, changed_at = $3,
			first_sent_at = CASE WHEN first_sent_at = '' THEN $3 ELSE first_sent_at END
		WHERE id = $1 AND state = $5 AND NOT EXISTS (
			SELECT 1 FROM outbox_refund AS other
			WHERE other.account = outbox_refund.account AND other.refund_id = outbox_refund.refund_id AND other.id <> outbox_refund.id
			AND (other.state IN ('sending', 'unknown', 'absent') OR other.state = 'pending' AND other.id < outbox_refund.id))
		RETURNING id, account, content, attempts`, row, worker, timeText(time.Now()), find(Pending, eventBegun).to, Pending)
}

// inDoubtToo ends the reason of a refund that was sent again.
const inDoubtToo = "; an earlier attempt is in doubt"

// move makes the transition that the state machine has for an event, and keeps what
// the service said with it, if anything. It reports false if the refund has another
// state or another attempt by then.
func move(ctx context.Context, db session, row int64, attempt int, from State, e event, said *response) (bool, error) {
	t := find(from, e)
	if t.to == "" {
		return false, fmt.Errorf("outbox: a refund that is %s cannot become %q", from, e)
	}
	set, args := "changed_at = $6", []any{row, attempt, from, t.to, t.inDoubt, timeText(time.Now())}
	switch e {
	case eventDoubted, eventConflict:
		set += ", doubtful = CASE WHEN doubtful = 0 THEN attempts ELSE doubtful END"
	case eventRefused, eventUnsent: // this attempt is not in doubt
		set += ", doubtful = CASE WHEN doubtful = attempts THEN 0 ELSE doubtful END"
	}
	if said != nil {
		set += ", status_code = $7, reason = CASE WHEN doubtful IN (0, attempts) THEN $8 ELSE $11 END, message = $9, request_id = $10"
		args = append(args, said.status, said.reason, said.message, said.requestID, strings.TrimPrefix(said.reason+inDoubtToo, "; "))
	}
	n, err := db.exec(ctx, `UPDATE outbox_refund SET `+set+`, state = CASE WHEN doubtful IN (0, attempts) THEN $4 ELSE $5 END
		WHERE id = $1 AND attempts = $2 AND state = $3`, args...)
	return n == 1, err
}

// What stands in the log of decisions besides decisions.
const (
	lateResponse  event = "late response"                   // the state was unknown, absent or pending
	afterDecision event = "late response, after a decision" // for a person to look at
)

func note(ctx context.Context, db session, row int64, attempt int, what event, by, why string) error {
	_, err := db.exec(ctx, `INSERT INTO outbox_decision (refund, attempt, decided_at, who, what, note) VALUES ($1, $2, $3, $4, $5, $6)`,
		row, attempt, timeText(time.Now()), by, what, why)
	return err
}

// settle makes the transition of an event and gives jobs to what can go on after it.
// logged is what the log says of it. It reports false if the refund has another state by
// then.
func (o *Outbox) settle(ctx context.Context, tx session, row int64, attempt int, from State, e event, said *response, logged event, by, why string) (bool, error) {
	done, err := move(ctx, tx, row, attempt, from, e, said)
	if err != nil || !done {
		return false, err
	}
	if err := note(ctx, tx, row, attempt, logged, by, why); err != nil {
		return false, err
	}
	return true, o.giveJobs(ctx, tx, `state = 'pending' AND EXISTS (SELECT 1 FROM outbox_refund AS settled
		WHERE settled.id = $1 AND settled.account = this.account AND settled.refund_id = this.refund_id)`, row)
}
