package outbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// An Entry is what is told of a refund: nothing of the record but its account, refund_id,
// amount and currency.
type Entry struct {
	Row       int64     `json:"row" db:"id"`                // its number in the table
	State     State     `json:"state"`                      // at the time of the call
	AccountID string    `json:"account" db:"account"`       // as enqueued
	RefundID  string    `json:"refund_id"`                  // as in the record
	Amount    *int64    `json:"amount"`                     // as in the record: nil if it has none
	Currency  string    `json:"currency"`                   // as in the record: "" if it has none
	Attempts  int       `json:"attempts"`                   // times that it was marked as sending
	FirstSent time.Time `json:"first_sent,omitzero" db:"-"` // when it was marked first
	LastSent  time.Time `json:"last_sent,omitzero" db:"-"`  // when it was marked last
	RequestID string    `json:"request_id"`                 // the service's, of the last response
	Reason    string    `json:"reason"`                     // why the last attempt was not accepted

	absentUntil time.Time // until when the report is complete that does not have it
}

// money writes the amount and the currency.
func money(amount *int64, currency string) string {
	if amount == nil {
		return "unset " + currency
	}
	return fmt.Sprintf("%d %s", *amount, currency)
}

// differs tells what differs, or "".
func (e *Entry) differs(amount *int64, currency string) string {
	there, here := money(amount, currency), money(e.Amount, e.Currency)
	if there == here {
		return ""
	}
	return fmt.Sprintf("amount or currency differs: %s there, %s here", there, here)
}

func (o *Outbox) list(ctx context.Context, where string, args ...any) ([]Entry, error) {
	rows, err := all[struct {
		Entry
		FirstSentAt, SentAt, AbsentUntil string
	}](ctx, o, `SELECT id, state, account, refund_id, amount, currency, attempts,
		first_sent_at, sent_at, request_id, reason, absent_until FROM outbox_refund AS this WHERE `+where, args...)
	entries := make([]Entry, len(rows))
	for i, r := range rows {
		entries[i] = r.Entry
		entries[i].FirstSent, entries[i].LastSent = parseTime(r.FirstSentAt), parseTime(r.SentAt)
		// Earlier versions wrote something behind the time.
		entries[i].absentUntil = parseTime(r.AbsentUntil[:min(len(timeLayout), len(r.AbsentUntil))])
	}
	return entries, err
}

// A Filter chooses refunds. Each field that is set narrows the choice.
type Filter struct {
	States []State // those of any of these
	Rows   []int64 // those with one of these as Entry.Row
}

// superseded is true of a rejected refund that a later record of its refund_id corrected.
const superseded = `(this.state = 'rejected' AND EXISTS (SELECT 1 FROM outbox_refund AS later WHERE later.state <> 'rejected'
	AND later.account = this.account AND later.refund_id = this.refund_id AND later.id > this.id))`

// List returns the refunds that a filter chooses, the latest first, all at once. A
// rejected one that a later record of its refund_id corrected is left out, unless
// Filter.Rows names it.
func (o *Outbox) List(ctx context.Context, f Filter) ([]Entry, error) {
	if err := o.check(ctx); err != nil {
		return nil, err
	}
	where, args := `TRUE`, []any(nil)
	if len(f.States) > 0 {
		var states []string
		for _, state := range f.States {
			args = append(args, state)
			states = append(states, fmt.Sprint("$", len(args)))
		}
		where += ` AND state IN (` + strings.Join(states, ", ") + `)`
	}
	if len(f.Rows) > 0 {
		var rows []string
		for _, row := range f.Rows {
			rows = append(rows, strconv.FormatInt(row, 10)) // a statement takes few parameters
		}
		where += ` AND id IN (` + strings.Join(rows, ", ") + `)`
	} else {
		where += ` AND NOT ` + superseded
	}
	found, err := o.list(ctx, where+` ORDER BY id DESC`, args...)
	if err != nil {
		err = fmt.Errorf("outbox: list: %w", err)
	}
	return found, err
}

// A Status is how many refunds are in which state, and what the workers do.
type Status struct {
	Pending       int       `json:"pending"` // refunds in this state, as in the next five
	Sending       int       `json:"sending"`
	Accepted      int       `json:"accepted"`
	Rejected      int       `json:"rejected"`
	Unknown       int       `json:"unknown"`
	Absent        int       `json:"absent"`
	PendingSince  time.Time `json:"pending_since,omitzero"` // when the oldest of the pending was enqueued
	LateResponses int       `json:"late_responses"`         // came after a decision and contradict it, and nobody has seen them
	LastSent      time.Time `json:"last_sent,omitzero"`     // when a worker last marked a refund
	PausedUntil   time.Time `json:"paused_until,omitzero"`  // zero: the queue is not paused
	PausedFor     string    `json:"paused_for,omitempty"`   // the failure that paused it
	WorkerLives   bool      `json:"worker_lives"`           // for some seconds after a worker's end, it may be wrong
	Reasons       []Reason  `json:"reasons"`                // of all states but Accepted, the most frequent first, at most 50
}

// A Reason is why refunds have a state.
type Reason struct {
	State  State  `json:"state"`  // Entry.State
	Reason string `json:"reason"` // Entry.Reason
	Count  int    `json:"count"`  // refunds with both
}

// lateResponses are those that came after a decision, and that nobody has seen.
const lateResponses = ` FROM outbox_decision AS late WHERE what = '` + string(afterDecision) + `' AND NOT EXISTS (
	SELECT 1 FROM outbox_decision AS later WHERE later.refund = late.refund AND later.id > late.id AND later.what = '` + string(Seen) + `')`

// Status counts the refunds. Somebody has to look when Unknown, Absent or LateResponses is
// not zero, or when PendingSince is long ago.
func (o *Outbox) Status(ctx context.Context) (Status, error) {
	if err := o.check(ctx); err != nil {
		return Status{}, err
	}
	// One of the workers that live is the leader that River elects.
	row, err := one[struct {
		Status                                          `db:""`
		PendingSinceText, LastSentText, PausedUntilText string
	}](ctx, o, `SELECT
		COUNT(*) FILTER (WHERE state = 'accepted') AS accepted, COUNT(*) FILTER (WHERE state = 'rejected') AS rejected,
		COUNT(*) FILTER (WHERE state = 'unknown') AS unknown, COUNT(*) FILTER (WHERE state = 'absent') AS absent,
		COUNT(*) FILTER (WHERE state = 'pending') AS pending, COUNT(*) FILTER (WHERE state = 'sending') AS sending,
		COALESCE(MIN(enqueued_at) FILTER (WHERE state = 'pending'), '') AS pending_since_text,
		(SELECT COUNT(DISTINCT refund)`+lateResponses+`) AS late_responses,
		COALESCE(MAX(sent_at), '') AS last_sent_text,
		COALESCE((SELECT until FROM outbox_pause WHERE until > $1), '') AS paused_until_text,
		COALESCE((SELECT reason FROM outbox_pause WHERE until > $1), '') AS paused_for,
		EXISTS (SELECT 1 FROM `+o.river("leader")+` WHERE expires_at > `+riverTime(time.Now())+`) AS worker_lives FROM outbox_refund`, timeText(time.Now()))
	s := row.Status
	s.PendingSince, s.LastSent, s.PausedUntil = parseTime(row.PendingSinceText), parseTime(row.LastSentText), parseTime(row.PausedUntilText)
	if err == nil {
		s.Reasons, err = all[Reason](ctx, o, `SELECT state, reason, COUNT(*) AS count FROM outbox_refund
			WHERE reason <> '' AND state <> 'accepted' GROUP BY state, reason ORDER BY COUNT(*) DESC, state, reason LIMIT 50`)
	}
	if err != nil {
		err = fmt.Errorf("outbox: status: %w", err)
	}
	return s, err
}
