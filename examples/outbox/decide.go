package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"text/tabwriter"
	"time"

	"github.com/carddata/carddata-go/examples/internal/target"
)

// choose returns the refunds that the flags choose.
func choose(ctx context.Context, db session, f *filter) (chosen []listed, err error) {
	err = f.each(ctx, db, math.MaxInt32, func(r listed) error {
		chosen = append(chosen, r)
		return nil
	})
	return chosen, err
}

// token names a list of refunds and their attempts, and changes when it does.
func token(chosen []listed) string {
	h := sha256.New()
	for _, r := range chosen {
		fmt.Fprintf(h, "%d %d\n", r.row, r.attempt)
	}
	return fmt.Sprintf("%d-%s", len(chosen), hex.EncodeToString(h.Sum(nil)[:4]))
}

// list lists the refunds that can be decided about.
func (p *process) list(ctx context.Context, db session, f *resolveFlags) error {
	chosen, err := choose(ctx, db, &f.filter)
	if err != nil {
		return err
	}
	if err := printRefunds(ctx, p.stdout, db, f.state, f.filter, f.limit); err != nil {
		return err
	}
	if more := len(chosen) - f.limit; more > 0 {
		fmt.Fprintf(p.stdout, "  and %s more (-limit)\n", grouped(more))
	}
	if err := p.superseded(ctx, db, f, len(chosen)); err != nil {
		return err
	}
	if len(chosen) > 0 {
		fmt.Fprintf(p.stdout, "\nto decide about all of this list: -expect %s\n", token(chosen))
	}
	return nil
}

// superseded tells how many are left out.
func (p *process) superseded(ctx context.Context, db session, f *resolveFlags, chosen int) error {
	if !f.current {
		return nil
	}
	whole := f.filter
	whole.current = false
	all, err := choose(ctx, db, &whole)
	if out := len(all) - chosen; err == nil && out > 0 {
		fmt.Fprintf(p.stdout, "%s left out, behind which a later record of the refund_id is not rejected (-superseded)\n", grouped(out))
	}
	return err
}

// decideAll records the decision for the chosen refunds. Each is decided about as
// it was chosen: not about another attempt, of which nobody has said anything.
func (p *process) decideAll(ctx context.Context, db database, f *resolveFlags) error {
	chosen, err := choose(ctx, db, &f.filter)
	if err != nil {
		return err
	}
	if err := f.mayDecide(chosen, time.Now()); err != nil {
		return err
	}
	if err := p.superseded(ctx, db, f, len(chosen)); err != nil {
		return err
	}
	decided := 0
	for _, r := range chosen {
		err := db.transact(ctx, func(tx transaction) error {
			done, err := decide(ctx, tx, r.row, r.attempt, f.state, f.decision, 0)
			if done {
				decided++
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(p.stdout, "%s refunds: %s\n", grouped(decided), f.what)
	return err
}

// mayDecide refuses a decision about other refunds than were looked at, or before
// it can be known.
func (f *resolveFlags) mayDecide(chosen []listed, now time.Time) error {
	accounts := make(map[string]bool)
	var last string
	for _, r := range chosen {
		accounts[r.account] = true
		last = max(last, r.sentAt)
	}
	if f.refundID != "" && len(accounts) > 1 {
		return target.Usage("outbox: %d accounts have the refund_id: choose one by -account", len(accounts))
	}
	if f.expect != "" && len(chosen) > 0 && f.expect != token(chosen) {
		return errors.New("outbox: the list has changed since -expect, or was chosen by other flags: look at it again")
	}
	if over := parseTime(last).Add(submitTimeout); f.state == unknown && f.what != decidedAccepted && now.Before(over) {
		return fmt.Errorf("outbox: the request of one of them can still leave until %s: decide after that", timeText(over))
	}
	return nil
}

// seen notes that somebody looked at the answers that came after a decision.
func (p *process) seen(ctx context.Context, db database, f *resolveFlags) error {
	answers, err := lateAnswers(ctx, db)
	if err != nil {
		return err
	}
	noted := 0
	for _, row := range f.rows {
		attempt, found := answers[row]
		if !found {
			continue
		}
		if err := note(ctx, db, row, attempt, f.decision); err != nil {
			return err
		}
		noted++
	}
	_, err = fmt.Fprintf(p.stdout, "%s refunds: %s\n", grouped(noted), f.what)
	return err
}

// lateAnswers returns the refunds, with the attempt, of which an answer came after
// a decision, and nobody has looked at it.
func lateAnswers(ctx context.Context, db session) (map[int64]int, error) {
	found := make(map[int64]int)
	err := db.query(ctx, func(scan scanner) error {
		var row int64
		var attempt int
		err := scan(&row, &attempt)
		found[row] = attempt
		return err
	}, `SELECT refund, attempt FROM outbox_decision AS answer WHERE what = $1 AND NOT EXISTS (
		SELECT 1 FROM outbox_decision AS later WHERE later.refund = answer.refund AND later.id > answer.id AND later.what = $2)`,
		afterDecision, decidedSeen)
	return found, err
}

func (p *process) printDecisions(ctx context.Context, db session, limit int) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "time\twho\twhat\trow\taccount\trefund_id\tattempt\tnote")
	err := db.query(ctx, func(scan scanner) error {
		var at, who, what, account, refundID, note string
		var row int64
		var attempt int
		if err := scan(&at, &who, &what, &row, &account, &refundID, &attempt, &note); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%d\t%s\n", at, printable(who), what, row, printable(account), printable(refundID), attempt, printable(note))
		return err
	}, `SELECT d.decided_at, d.who, d.what, r.id, r.account, r.refund_id, d.attempt, d.note
		FROM outbox_decision AS d JOIN outbox_refund AS r ON r.id = d.refund ORDER BY d.id DESC LIMIT $1`, limit)
	if err != nil {
		return err
	}
	return w.Flush()
}
