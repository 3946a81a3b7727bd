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
	Row         int64  `json:"row"`
	State       State  `json:"state"`
	Account     string `json:"account"`
	RefundID    string `json:"refund_id"`
	Amount      *int64 `json:"amount"`
	Currency    string `json:"currency"`
	Attempt     int    `json:"attempt"`
	FirstSentAt string `json:"first_sent_at"`
	SentAt      string `json:"sent_at"`
	RequestID   string `json:"request_id"`
	Reason      string `json:"evidence"`

	absentUntil string // the report that does not have it
	digest      string
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
	switch other := (&Listed{Amount: amount, Currency: currency}).Money(); {
	case (amount == nil) != (l.Amount == nil) || amount != nil && *amount != *l.Amount:
		return fmt.Sprintf("the amount differs: %s there, %s here", other, l.Money())
	case currency != l.Currency:
		return fmt.Sprintf("the currency differs: %s there, %s here", other, l.Money())
	}
	return ""
}

func list(ctx context.Context, db Session, where string, args ...any) ([]Listed, error) {
	columns := func(l *Listed) []any {
		return []any{&l.Row, &l.State, &l.Account, &l.RefundID, &l.Amount, &l.Currency, &l.Attempt,
			&l.FirstSentAt, &l.SentAt, &l.RequestID, &l.Reason, &l.absentUntil, &l.digest}
	}
	return all(ctx, db, columns, `SELECT id, state, account, refund_id, amount, currency, attempts,
		first_sent_at, sent_at, request_id, reason, absent_until, digest FROM outbox_refund AS this WHERE `+where, args...)
}

// A Filter chooses refunds of a state.
type Filter struct {
	State                     State
	Account, RefundID, Reason string  // if not empty, only those with it
	Rows                      []int64 // if there are any, only these
}

// List returns the refunds that a filter chooses, the latest first. Of the rejected
// ones, it leaves out what a later record of the refund_id corrected.
func List(ctx context.Context, db *Database, f Filter) ([]Listed, error) {
	listed, err := list(ctx, db, `state = $1 AND $2 IN ('', account) AND $3 IN ('', refund_id) AND $4 IN ('', reason)
		AND NOT EXISTS (SELECT 1 FROM outbox_refund AS later WHERE this.state = 'rejected' AND later.state <> 'rejected'
			AND later.account = this.account AND later.refund_id = this.refund_id AND later.id > this.id)
		ORDER BY id DESC`, f.State, f.Account, f.RefundID, f.Reason)
	return slices.DeleteFunc(listed, func(l Listed) bool { return len(f.Rows) > 0 && !slices.Contains(f.Rows, l.Row) }), err
}

// Token names a list of refunds and their attempts, and changes when it does.
func Token(chosen []Listed) string {
	h := sha256.New()
	for _, l := range chosen {
		fmt.Fprintln(h, l.Row, l.Attempt, l.State)
	}
	return fmt.Sprintf("%d-%s", len(chosen), hex.EncodeToString(h.Sum(nil)[:4]))
}

// ErrTooEarly is what Decide returns while a request can still leave.
var ErrTooEarly = errors.New("outbox: the request of one of them can still leave")

// Decide records a decision for refunds as they were listed: not about another
// attempt, of which nobody has said anything. It returns for how many it did.
func Decide(ctx context.Context, db *Database, chosen []Listed, said Decision) (decided int, err error) {
	for _, l := range chosen {
		over := parseTime(l.SentAt).Add(submitTimeout)
		if l.State == Unknown && said.What != DecideAccepted && time.Now().Before(over) {
			return 0, fmt.Errorf("%w until %s: decide after that", ErrTooEarly, timeText(over))
		}
	}
	for _, l := range chosen {
		err := db.Transact(ctx, func(tx Tx) error {
			done, err := decide(ctx, tx, l.Row, l.Attempt, l.State, said)
			if done {
				decided++
			}
			return err
		})
		if err != nil {
			return decided, err
		}
	}
	return decided, nil
}

// MayDecide tells whether the state machine has a decision for a state.
func MayDecide(from State, what Event) bool {
	_, may := find(from, what)
	return may
}

// A Logged decision is one with its refund.
type Logged struct {
	Decision
	At, Account, RefundID string
	Row                   int64
	Attempt               int
}

// Decisions returns the latest decisions, the latest first.
func Decisions(ctx context.Context, db *Database, limit int) ([]Logged, error) {
	columns := func(l *Logged) []any {
		return []any{&l.At, &l.Who, &l.What, &l.Row, &l.Account, &l.RefundID, &l.Attempt, &l.Note}
	}
	return all(ctx, db, columns, `SELECT d.decided_at, d.who, d.what, r.id, r.account, r.refund_id, d.attempt, d.note
		FROM outbox_decision AS d JOIN outbox_refund AS r ON r.id = d.refund ORDER BY d.id DESC LIMIT $1`, limit)
}

// lateResponses are those that came after a decision, and that nobody has seen.
const lateResponses = ` FROM outbox_decision AS late WHERE what = $1 AND NOT EXISTS (
	SELECT 1 FROM outbox_decision AS later WHERE later.refund = late.refund AND later.id > late.id AND later.what = $2)`

// See notes that somebody looked at the late responses of some refunds.
func See(ctx context.Context, db *Database, rows []int64, said Decision) (noted int, err error) {
	waiting, err := all(ctx, db, only[int64], `SELECT DISTINCT refund`+lateResponses, afterDecision, seen)
	said.What = seen
	for _, row := range waiting {
		if err == nil && slices.Contains(rows, row) {
			noted++
			err = note(ctx, db, row, 0, said)
		}
	}
	return noted, err
}

// A Summary is how many refunds are in which state.
type Summary struct {
	Enqueued int `json:"enqueued"`
	Accepted int `json:"accepted"`
	Rejected int `json:"rejected"`
	Unknown  int `json:"unknown"`
	Absent   int `json:"absent"`
	Pending  int `json:"pending"`
	Sending  int `json:"sending"`
	// OldestPending is how long a refund has waited to be sent.
	OldestPending int `json:"oldest_pending_seconds"`
	// Failing are those of the pending that were tried before, and did not get through.
	Failing       int    `json:"failing"`
	Jobless       int    `json:"pending_without_job"` // a worker gives them jobs
	Decisions     int    `json:"decisions"`
	LateResponses int    `json:"late_responses"` // that came after a decision, and that nobody has seen
	LastSent      string `json:"last_sent"`      // when a worker last marked a refund; "": never
	PausedUntil   string `json:"paused_until"`   // ""; the queue is not paused
	PausedFor     string `json:"paused_for"`     // the reason
	WorkerSeen    string `json:"worker_seen"`    // when a worker last said that it lives; "": none did
	WorkerLives   bool   `json:"worker_lives"`   // it said so within the last twenty seconds
}

// Summarize counts the refunds.
func Summarize(ctx context.Context, db *Database) (s Summary, err error) {
	counts, err := all(ctx, db, (*Reason).columns, `SELECT state, COUNT(*) FROM outbox_refund GROUP BY state`)
	if err != nil {
		return s, err
	}
	for _, c := range counts {
		s.Enqueued += c.Count
		*map[State]*int{Accepted: &s.Accepted, Rejected: &s.Rejected, Unknown: &s.Unknown, Absent: &s.Absent,
			Pending: &s.Pending, Sending: &s.Sending}[State(c.Text)] = c.Count
	}
	var oldest string
	err = db.Query(ctx, func(scan Scanner) error {
		return scan(&oldest, &s.LastSent, &s.Failing, &s.Decisions, &s.LateResponses, &s.PausedUntil, &s.PausedFor, &s.WorkerSeen)
	}, `SELECT COALESCE(MIN(CASE WHEN state = 'pending' THEN enqueued_at END), ''), COALESCE(MAX(sent_at), ''),
			COUNT(CASE WHEN state = 'pending' AND attempts > 0 THEN 1 END),
			(SELECT COUNT(*) FROM outbox_decision), (SELECT COUNT(DISTINCT refund)`+lateResponses+`),
			COALESCE((SELECT until FROM outbox_pause), ''), COALESCE((SELECT reason FROM outbox_pause), ''),
			COALESCE((SELECT MAX(seen_at) FROM outbox_worker), '')
		FROM outbox_refund`, afterDecision, seen)
	if err != nil {
		return s, err
	}
	s.WorkerLives = s.WorkerSeen > alive()
	if oldest != "" {
		s.OldestPending = int(time.Since(parseTime(oldest)).Seconds())
	}
	err = db.Query(ctx, func(scan Scanner) error { return scan(&s.Jobless) },
		`SELECT COUNT(*) FROM (`+db.orphans()+`) AS orphan`, submitArgs{}.Kind(), riverTime(time.Time{}))
	return s, err
}

// A Reason is why refunds have a state.
type Reason struct {
	Text  string
	Count int
}

func (r *Reason) columns() []any { return []any{&r.Text, &r.Count} }

// Reasons returns the reasons of a state, the most frequent first.
func Reasons(ctx context.Context, db *Database, state State) ([]Reason, error) {
	return all(ctx, db, (*Reason).columns, `SELECT reason, COUNT(*) FROM outbox_refund
		WHERE state = $1 AND reason <> '' GROUP BY reason ORDER BY COUNT(*) DESC, reason LIMIT 20`, state)
}
