package refundoutbox

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// orphanedAfter is how long a job runs, without having begun its refund, when that gets
// another one.
const orphanedAfter = 20 * time.Second

// recover makes the markers of dead workers unknown, gives jobs to the refunds that
// have none, and asks the resolver.
func (w *worker) recover(ctx context.Context) error {
	return errors.Join(w.bury(ctx), w.adopt(ctx), w.resolve(ctx))
}

// bury makes the markers unknown that no worker has dealt with, most likely because it
// is dead. The request of such a marker is over, and cannot leave any more.
func (w *worker) bury(ctx context.Context) error {
	// In one order, as two workers that bury the same one would deadlock.
	markers, err := all[claim](ctx, w.db, `SELECT id, attempts FROM outbox_refund WHERE state = 'sending' AND sent_at <= $1 ORDER BY id`,
		timeText(time.Now().Add(-staleAfter)))
	if err != nil || len(markers) == 0 {
		return err
	}
	return w.db.Transact(ctx, func(tx Tx) error {
		for _, c := range markers {
			if err := w.doubt(ctx, tx, &c, workerEnded); err != nil {
				return err
			}
		}
		return nil
	})
}

// nothingBefore tells of this refund that no other of its refund_id waits for a
// decision.
const nothingBefore = `NOT EXISTS (
	SELECT 1 FROM outbox_refund AS other WHERE other.account = this.account AND other.refund_id = this.refund_id
	AND other.id <> this.id AND other.state IN ('unknown', 'absent'))`

// orphans selects the pending refunds that no job will send, and that nothing of
// their refund_id stands before: after a decision, or because a backup was restored,
// or a person deleted a job. A job that began before a time does not count: River
// leaves the jobs of dead workers for long.
func (d *Database) orphans(before time.Time) string {
	return `SELECT id FROM outbox_refund AS this WHERE state = 'pending' AND ` + nothingBefore + `
		EXCEPT SELECT CAST(args->>'row' AS BIGINT) FROM ` + d.river("job") + ` WHERE kind = '` + kind + `'
		AND finalized_at IS NULL AND (state <> 'running' OR attempted_at > ` + riverTime(before) + `)`
}

// river names a table of River's.
func (d *Database) river(table string) string {
	return strings.TrimPrefix(d.schema+".river_"+table, ".")
}

// riverTime is how River's tables have a time in SQLite; PostgreSQL reads it, too.
func riverTime(t time.Time) string { return t.UTC().Format("'2006-01-02 15:04:05Z'") }

// adopt gives jobs to the refunds that have none.
func (w *worker) adopt(ctx context.Context) error {
	rows, err := all[int64](ctx, w.db, w.db.orphans(time.Now().Add(-orphanedAfter))+` ORDER BY 1`)
	if len(rows) > 0 {
		w.Log.Warn("pending refunds had no job, and get one", "refunds", len(rows))
	}
	for batch := range slices.Chunk(rows, 5000) {
		err = errors.Join(err, w.db.Transact(ctx, func(tx Tx) error { return insertJobs(ctx, tx, batch) }))
	}
	return err
}

// A Resolver asks the service whether it has a refund, where the service can be
// asked. The service description has no endpoint for it.
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
