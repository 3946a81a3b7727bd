package refundoutbox

import (
	"context"
	"time"
)

// A Resolver asks the service whether it has a refund, where the service can be
// asked. The documented interface has no endpoint for it.
type Resolver interface {
	// Resolve reports whether the service has a refund, and with which amount and
	// currency. Not found has to mean that it never came: if the service's records
	// show up late, return an error until they would have.
	Resolve(ctx context.Context, account, refundID string) (found bool, amount int64, currency string, err error)
}

// resolveAfter is how old a request is when its outcome is asked for, and the time
// between two questions about one refund.
const resolveAfter = 5 * time.Minute

// resolve asks about unknown refunds. The answer counts as a report of one row: what
// is found becomes accepted, and what is not becomes absent.
func (w *worker) resolve(ctx context.Context) error {
	if w.Resolver == nil {
		return nil
	}
	unknown, err := list(ctx, w.db, `state = 'unknown' AND sent_at <= $1 AND asked_at <= $1 ORDER BY asked_at, id LIMIT 100`,
		timeText(time.Now().Add(-resolveAfter)))
	if err != nil {
		return err
	}
	for _, l := range unknown {
		report := &Report{ID: "resolver", Until: time.Now()}
		if _, err := w.db.Exec(ctx, `UPDATE outbox_refund SET asked_at = $2 WHERE id = $1`, l.Row, timeText(report.Until)); err != nil {
			return err
		}
		asking, cancel := context.WithTimeout(ctx, 10*time.Second)
		found, amount, currency, err := w.Resolver.Resolve(asking, l.Account, l.RefundID)
		cancel()
		if err != nil {
			w.Log.Warn("the resolver failed, and is asked again later", "row", l.Row, "error", err)
			continue
		}
		group, err := list(ctx, w.db, `account = $1 AND refund_id = $2 ORDER BY id`, l.Account, l.RefundID)
		if err != nil {
			return err
		}
		p := newPlan(report)
		if found {
			p.compare(group, []*ReportRow{{Amount: &amount, Currency: currency}})
		} else {
			p.missing(group)
		}
		for _, d := range p.Differences {
			w.Log.Warn("the resolver cannot settle a refund", "row", d.Row, "reason", d.What)
		}
		if _, err := p.Apply(ctx, w.db, Decision{Who: "resolver"}); err != nil {
			return err
		}
	}
	return nil
}
