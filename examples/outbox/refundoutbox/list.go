package refundoutbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Listed refund is what is told of one: nothing of the record but its account,
// refund_id, amount and currency.
type Listed struct {
	Row         int64  `json:"row" db:"id"`
	State       State  `json:"state"`
	Account     string `json:"account"`
	RefundID    string `json:"refund_id"`
	Amount      *int64 `json:"amount"`
	Currency    string `json:"currency"`
	Attempt     int    `json:"attempt" db:"attempts"`
	FirstSentAt string `json:"first_sent_at"`
	SentAt      string `json:"sent_at"`
	RequestID   string `json:"request_id"`
	Reason      string `json:"evidence"`
	AbsentUntil string `json:"-"` // the report that does not have it
	Digest      string `json:"-"`

	event Event // what is to happen to it
}

// Money writes the amount and the currency.
func (l *Listed) Money() string {
	if l.Amount == nil {
		return "unset " + l.Currency
	}
	return fmt.Sprintf("%d %s", *l.Amount, l.Currency)
}

// differs tells what differs, or "".
func (l *Listed) differs(amount *int64, currency string) string {
	there := (&Listed{Amount: amount, Currency: currency}).Money()
	if there == l.Money() {
		return ""
	}
	return fmt.Sprintf("amount or currency differs: %s there, %s here", there, l.Money())
}

func list(ctx context.Context, db Session, where string, args ...any) ([]Listed, error) {
	return all[Listed](ctx, db, `SELECT id, state, account, refund_id, amount, currency, attempts,
		first_sent_at, sent_at, request_id, reason, absent_until, digest FROM outbox_refund AS this WHERE `+where, args...)
}

// A Filter chooses refunds.
type Filter struct {
	State  State   // empty: the unknown and the absent ones
	Reason string  // if not empty, only those with it
	Rows   []int64 // if there are any, only these
}

// List returns the refunds that a filter chooses, the latest first. Of the rejected
// ones, it leaves out what a later record of the refund_id corrected.
func List(ctx context.Context, db *Database, f Filter) ([]Listed, error) {
	listed, err := list(ctx, db, `(state = $1 OR $1 = '' AND state IN ('unknown', 'absent')) AND $2 IN ('', reason)
		AND NOT EXISTS (SELECT 1 FROM outbox_refund AS later WHERE this.state = 'rejected' AND later.state <> 'rejected'
			AND later.account = this.account AND later.refund_id = this.refund_id AND later.id > this.id)
		ORDER BY state DESC, id DESC`, f.State, f.Reason)
	return slices.DeleteFunc(listed, func(l Listed) bool { return len(f.Rows) > 0 && !slices.Contains(f.Rows, l.Row) }), err
}

// Token names a list of refunds as they are, and changes when one does.
func Token(chosen []Listed, of ...any) string {
	h := sha256.New()
	fmt.Fprintln(h, of...)
	for _, l := range chosen {
		fmt.Fprintln(h, l.Row, l.Attempt, l.State, l.event)
	}
	return fmt.Sprintf("%d-%s", len(chosen), hex.EncodeToString(h.Sum(nil)[:4]))
}

// ErrTooEarly is what Decide returns while a request can still leave.
var ErrTooEarly = errors.New("outbox: the request of one of them can still leave")

// Decide records a decision for refunds as they were listed: not about another
// attempt, of which nobody has said anything. It returns for how many it did.
func Decide(ctx context.Context, db *Database, chosen []Listed, said Decision) (decided int, err error) {
	p := &Plan{}
	for _, l := range chosen {
		over := parseTime(l.SentAt).Add(submitTimeout)
		if l.State == Unknown && said.What != DecideAccepted && time.Now().Before(over) {
			return 0, fmt.Errorf("%w until %s: decide after that", ErrTooEarly, timeText(over))
		}
		p.choose(l, said.What)
	}
	return p.Apply(ctx, db, said)
}

// A Logged decision is one with its refund.
type Logged struct {
	Decision
	DecidedAt, Account, RefundID string
	Row                          int64 `db:"id"`
	Attempt                      int
}

// Decisions returns the decisions, the latest first.
func Decisions(ctx context.Context, db *Database) ([]Logged, error) {
	return all[Logged](ctx, db, `SELECT decided_at, who, what, r.id, account, refund_id, attempt, note
		FROM outbox_decision AS d JOIN outbox_refund AS r ON r.id = d.refund ORDER BY d.id DESC`)
}

// lateResponses are those that came after a decision, and that nobody has seen.
const lateResponses = ` FROM outbox_decision AS late WHERE what = '` + string(afterDecision) + `' AND NOT EXISTS (
	SELECT 1 FROM outbox_decision AS later WHERE later.refund = late.refund AND later.id > late.id AND later.what = '` + string(Seen) + `')`

// See notes that somebody looked at the late responses of some refunds.
func See(ctx context.Context, db *Database, rows []int64, said Decision) (noted int, err error) {
	waiting, err := all[int64](ctx, db, `SELECT DISTINCT refund`+lateResponses)
	said.What = Seen
	for _, row := range waiting {
		if err == nil && slices.Contains(rows, row) {
			noted++
			err = note(ctx, db, row, 0, said)
		}
	}
	return noted, err
}

// A Summary is how many refunds are in which state, and what the workers do. Times
// are "" for never.
type Summary struct {
	Enqueued          int    `json:"enqueued"`
	Accepted          int    `json:"accepted"`
	Rejected          int    `json:"rejected"`
	Unknown           int    `json:"unknown"`
	Absent            int    `json:"absent"`
	Pending           int    `json:"pending"`
	Sending           int    `json:"sending"`
	PendingSince      string `json:"pending_since"`       // when the oldest of the pending was enqueued
	PendingFailed     int    `json:"pending_failed"`      // of the pending, those that were tried before
	PendingWithoutJob int    `json:"pending_without_job"` // a worker gives them jobs
	LateResponses     int    `json:"late_responses"`      // that came after a decision, and that nobody has seen
	LastSent          string `json:"last_sent"`           // when a worker last marked a refund
	PausedUntil       string `json:"paused_until"`        // "": the queue is not paused
	PausedFor         string `json:"paused_for"`          // the reason
	WorkerLives       bool   `json:"worker_lives"`        // or did a quarter of a minute ago
}

// Summarize counts the refunds. One of the workers that live is the leader that River
// elects.
func Summarize(ctx context.Context, db *Database) (Summary, error) {
	return one[Summary](ctx, db, `SELECT COUNT(*) AS enqueued,
		COUNT(*) FILTER (WHERE state = 'accepted') AS accepted, COUNT(*) FILTER (WHERE state = 'rejected') AS rejected,
		COUNT(*) FILTER (WHERE state = 'unknown') AS unknown, COUNT(*) FILTER (WHERE state = 'absent') AS absent,
		COUNT(*) FILTER (WHERE state = 'pending') AS pending, COUNT(*) FILTER (WHERE state = 'sending') AS sending,
		COALESCE(MIN(enqueued_at) FILTER (WHERE state = 'pending'), '') AS pending_since,
		COUNT(*) FILTER (WHERE state = 'pending' AND attempts > 0) AS pending_failed,
		(SELECT COUNT(*) FROM (`+db.orphans(time.Time{})+`) AS orphan) AS pending_without_job,
		(SELECT COUNT(DISTINCT refund)`+lateResponses+`) AS late_responses,
		COALESCE(MAX(sent_at), '') AS last_sent,
		COALESCE((SELECT until FROM outbox_pause), '') AS paused_until,
		COALESCE((SELECT reason FROM outbox_pause), '') AS paused_for,
		EXISTS (SELECT 1 FROM `+db.river("leader")+` WHERE expires_at > `+riverTime(time.Now())+`) AS worker_lives FROM outbox_refund`)
}

// A Reason is why refunds have a state.
type Reason struct {
	State  State
	Reason string
	Count  int
}

// Reasons returns the reasons of all states, the most frequent of each first.
func Reasons(ctx context.Context, db *Database) ([]Reason, error) {
	return all[Reason](ctx, db, `SELECT state, reason, COUNT(*) AS count FROM outbox_refund
		WHERE reason <> '' AND state <> 'accepted' GROUP BY state, reason ORDER BY state DESC, COUNT(*) DESC, reason LIMIT 50`)
}
