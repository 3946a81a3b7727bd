package outbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carddata/carddata-go/refunds"
)

// An Entry is what is told of a refund: nothing of the record but its account, refund_id,
// amount and currency.
type Entry struct {
	Row        int64     `db:"id"` // its number in the table
	State      State     // at the time of the call
	AccountID  string    `db:"account"` // as enqueued
	RefundID   string    // as in the record
	Amount     *int64    // as in the record: nil if it has none
	Currency   string    // as in the record: "" if it has none
	Attempts   int       // times that it was in the state Sending, also if nothing was sent, as in an outage
	EnqueuedAt time.Time `db:"-"` // when
	LastSent   time.Time `db:"-"` // when it was Sending last
	NextAt     time.Time `db:"-"` // when it is sent at the earliest, if it is Pending; zero: at once
	RequestID  string    // the service's, of the last response
	Reason     string    // why the last attempt was not accepted
	// Receipt is what the service said when it accepted the refund, with the first 4 KiB of the
	// body. Submit and Get return it. It is nil if somebody else said so.
	Receipt *refunds.Receipt `db:"-"`
}

// List returns the refunds in any of the states, or all if none is named, in the order of
// their rows, all at once.
func (o *Outbox) List(ctx context.Context, states ...State) ([]Entry, error) {
	if err := o.check(ctx); err != nil {
		return nil, err
	}
	where, args := "", []any(nil)
	for i, state := range states {
		where += fmt.Sprintf(" OR state = $%d", i+1)
		args = append(args, state)
		if state == Unknown {
			where += " OR " + overdue(o)
		}
	}
	where = strings.Replace(where, " OR", " WHERE", 1)
	entries, err := o.entries(ctx, where+` ORDER BY id`, args...)
	if err != nil {
		return nil, failed("list", err)
	}
	return slices.DeleteFunc(entries, func(e Entry) bool { // sending when it was chosen, and unknown
		return len(states) > 0 && !slices.Contains(states, e.State)
	}), nil
}

// Get returns the records of a refund_id in the order of their rows: none, one, or also updates that
// were enqueued. It writes nothing.
func (o *Outbox) Get(ctx context.Context, accountID, refundID string) ([]Entry, error) {
	if err := o.check(ctx); err != nil {
		return nil, err
	}
	entries, err := entriesIn(ctx, o, withReceipt, `WHERE account = $1 AND refund_id = $2 ORDER BY id`, accountID, refundID)
	return entries, failed("get", err)
}

// entries returns the refunds that the rest of a statement chooses.
func (o *Outbox) entries(ctx context.Context, rest string, args ...any) ([]Entry, error) {
	return entriesIn(ctx, o, "", rest, args...)
}

// withReceipt are the columns of a receipt.
const withReceipt = ", status, content_type, body"

func entriesIn(ctx context.Context, s session, columns, rest string, args ...any) ([]Entry, error) {
	rows, err := all[struct {
		Entry                    `db:""`
		Enqueued, SentAt, NextAt string
		Overdue                  bool
		Status                   int
		ContentType              string
		Body                     []byte
	}](ctx, s, `SELECT id, state, account, refund_id, amount, currency, attempts, enqueued_at AS enqueued, sent_at, next_at, request_id, reason,
		`+overdue(s)+` AS overdue`+columns+` FROM outbox_refund `+rest, args...)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(rows))
	for i, r := range rows {
		e := &entries[i]
		*e = r.Entry
		e.EnqueuedAt, e.LastSent = parseTime(r.Enqueued), parseTime(r.SentAt)
		switch {
		case r.Overdue:
			e.State, e.Reason = Unknown, workerEnded.reason
		case e.State == Pending:
			e.NextAt = parseTime(r.NextAt)
		case e.State == Accepted && r.Status != 0:
			e.Receipt = &refunds.Receipt{StatusCode: r.Status, RequestID: e.RequestID, ContentType: r.ContentType, Body: r.Body, Attempts: e.Attempts}
		}
	}
	return entries, nil
}

// A Status is how many refunds are in which state, and why.
type Status struct {
	Counts       map[State]int // refunds in each state
	PendingSince time.Time     // when the oldest of the pending was enqueued
	LastSent     time.Time     // when a worker last sent a refund
	Reasons      []Reason      // of all states but Accepted, the most frequent first
}

// A Reason is why refunds have a state.
type Reason struct {
	State  State  // Entry.State
	Reason string // Entry.Reason
	Count  int    // refunds with both
}

// Status counts the refunds. Somebody has to look when some are Unknown, or when
// PendingSince is long ago.
func (o *Outbox) Status(ctx context.Context) (Status, error) {
	if err := o.check(ctx); err != nil {
		return Status{}, err
	}
	groups, err := all[struct {
		Reason           `db:""`
		Enqueued, SentAt string
	}](ctx, o, `SELECT state, reason, COUNT(*) AS count, MIN(enqueued_at) AS enqueued, MAX(sent_at) AS sent_at
		FROM (SELECT CASE WHEN `+overdue(o)+` THEN 'unknown' ELSE state END AS state,
			CASE WHEN `+overdue(o)+` THEN '`+workerEnded.reason+`' ELSE reason END AS reason, enqueued_at, sent_at FROM outbox_refund) AS seen
		GROUP BY state, reason ORDER BY COUNT(*) DESC, state, reason`)
	if err != nil {
		return Status{}, failed("status", err)
	}
	s := Status{Counts: make(map[State]int)}
	for _, g := range groups {
		s.Counts[g.State] += g.Count
		if sent := parseTime(g.SentAt); sent.After(s.LastSent) {
			s.LastSent = sent
		}
		if since := parseTime(g.Enqueued); g.State == Pending && (s.PendingSince.IsZero() || since.Before(s.PendingSince)) {
			s.PendingSince = since
		}
		if g.State != Accepted && g.Reason.Reason != "" {
			s.Reasons = append(s.Reasons, g.Reason)
		}
	}
	return s, nil
}
