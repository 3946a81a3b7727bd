package outbox

import (
	"context"
	"errors"
	"time"
)

// orphanedAfter is how long a job runs without having begun its refund when that gets
// another one.
const orphanedAfter = 20 * time.Second

// recover makes the marks of dead workers unknown, and gives jobs to the refunds that
// have none.
func (w *worker) recover(ctx context.Context) error {
	return errors.Join(w.bury(ctx), w.adopt(ctx))
}

// bury makes the marks unknown that no worker has dealt with, most likely because it
// is dead. The request of such a mark is over, and cannot leave any more.
func (w *worker) bury(ctx context.Context) error {
	// In one order: two workers that bury the same refunds would deadlock.
	marks, err := all[claim](ctx, w, `SELECT id, attempts FROM outbox_refund WHERE state = 'sending' AND sent_at <= $1 ORDER BY id`,
		timeText(time.Now().Add(-staleAfter)))
	if err != nil || len(marks) == 0 {
		return err
	}
	return w.transact(ctx, func(tx session) error {
		for _, c := range marks {
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

// adopt gives jobs to the pending refunds that no job will send, and that nothing of their
// refund_id stands before: a backup was restored, or a person deleted a job. A job that has
// run for long does not count: River leaves the jobs of dead workers for longer.
func (w *worker) adopt(ctx context.Context) error {
	lost := `SELECT id FROM outbox_refund AS this WHERE state = 'pending' AND ` + nothingBefore + `
		EXCEPT SELECT CAST(args->>'row' AS BIGINT) FROM ` + w.river("job") + ` WHERE kind = '` + jobKind + `'
		AND finalized_at IS NULL AND (state <> 'running' OR attempted_at > ` + riverTime(time.Now().Add(-orphanedAfter)) + `)
		ORDER BY 1 LIMIT 5000`
	found, err := one[int](ctx, w, `SELECT COUNT(*) FROM (`+lost+`) AS orphan`)
	if err != nil || found == 0 {
		return err
	}
	w.Log.Warn("pending refunds get another job: the worker that had theirs was killed or is slow, or the job is gone", "refunds", found)
	return w.giveJobs(ctx, w, `id IN (SELECT id FROM (`+lost+`) AS orphan)`)
}
