package main

import (
	"context"
	"fmt"
	"strings"
)

// A filter chooses refunds of a state.
type filter struct {
	state    string
	rows     []int64 // if there are any, only these
	account  string
	refundID string
	reason   string
	current  bool // only those without a later record of the refund_id that was not rejected
}

// all tells whether nothing but the state and the account chooses.
func (f *filter) all() bool { return len(f.rows) == 0 && f.refundID == "" && f.reason == "" }

// A listed refund is what is printed of one.
type listed struct {
	row                               int64
	account, refundID, amount, sentAt string
	attempt                           int
	reason                            string
}

// each calls found for the refunds, the latest first, at most limit of them.
func (f *filter) each(ctx context.Context, db session, limit int, found func(listed) error) error {
	conditions, args := []string{"state = $1"}, []any{f.state}
	add := func(column string, values ...any) {
		var places []string
		for _, value := range values {
			args = append(args, value)
			places = append(places, fmt.Sprintf("$%d", len(args)))
		}
		conditions = append(conditions, column+" IN ("+strings.Join(places, ", ")+")")
	}
	if len(f.rows) > 0 {
		var rows []any
		for _, row := range f.rows {
			rows = append(rows, row)
		}
		add("id", rows...)
	}
	if f.account != "" {
		add("account", f.account)
	}
	if f.refundID != "" {
		add("refund_id", f.refundID)
	}
	if f.reason != "" {
		add("reason", f.reason)
	}
	if f.current {
		conditions = append(conditions, `NOT EXISTS (
			SELECT 1 FROM outbox_refund AS later
			WHERE later.account = this.account AND later.refund_id = this.refund_id AND later.id > this.id AND later.state <> 'rejected')`)
	}
	statement := fmt.Sprintf(`SELECT id, account, refund_id, amount, currency, sent_at, attempts, reason FROM outbox_refund AS this
		WHERE %s ORDER BY id DESC LIMIT %d`, strings.Join(conditions, " AND "), limit)
	return db.query(ctx, func(scan scanner) error {
		var r listed
		var amount *int64
		var currency string
		if err := scan(&r.row, &r.account, &r.refundID, &amount, &currency, &r.sentAt, &r.attempt, &r.reason); err != nil {
			return err
		}
		r.amount = "unset " + currency
		if amount != nil {
			r.amount = fmt.Sprintf("%d %s", *amount, currency)
		}
		return found(r)
	}, statement, args...)
}
