package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// A recovery finds what dead workers left behind. River's own rescue would do, but
// waits for longer than a request can take; this knows that a worker is dead.
type recovery struct {
	*worker
	queue queue
	done  map[string]bool // workers whose jobs were given to others
}

// run makes the markers of dead workers unknown, and gives the refunds that they
// had not begun new jobs. The old jobs stay until River rescues them, and then do
// nothing, as any job of a refund that is settled.
func (r *recovery) run(ctx context.Context) error {
	left := make(map[string][]int64)
	err := r.db.query(ctx, func(scan scanner) error {
		var name string
		err := scan(&name)
		left[name] = nil
		return err
	}, `SELECT DISTINCT worker FROM outbox_refund WHERE state = 'sending'`)
	if err != nil {
		return err
	}
	running, err := r.queue.JobList(ctx, river.NewJobListParams().
		Kinds(submitArgs{}.Kind()).States(rivertype.JobStateRunning).First(10_000))
	if err != nil {
		return err
	}
	for _, job := range running.Jobs {
		var args submitArgs
		n := len(job.AttemptedBy)
		if n == 0 || json.Unmarshal(job.EncodedArgs, &args) != nil {
			continue
		}
		if name := job.AttemptedBy[n-1]; !r.done[name] {
			left[name] = append(left[name], args.Row)
		}
	}
	delete(left, r.name)
	for name, rows := range left {
		dead, err := r.db.isDead(ctx, name)
		if err == nil && dead {
			err = r.bury(ctx, name, rows)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *recovery) bury(ctx context.Context, name string, rows []int64) error {
	// What is sent again by itself is so only when the request of its marker cannot
	// leave any more: the worker may only be frozen.
	doubtable := time.Now()
	if r.resubmit {
		doubtable = doubtable.Add(-submitTimeout)
	}
	err := r.db.transact(ctx, func(tx transaction) error {
		var markers []claim
		err := tx.query(ctx, func(scan scanner) error {
			var c claim
			err := scan(&c.row, &c.attempt)
			markers = append(markers, c)
			return err
		}, `SELECT id, attempts FROM outbox_refund WHERE state = 'sending' AND worker = $1 AND sent_at <= $2 ORDER BY id`, name, timeText(doubtable))
		if err != nil {
			return err
		}
		// In one order, as two workers that bury the same one would deadlock.
		for _, c := range markers {
			if err := r.doubt(ctx, tx, c.row, c.attempt, noOutcome); err != nil {
				return err
			}
		}
		if len(rows) == 0 {
			return nil
		}
		return tx.insertJobs(ctx, jobsFor(0, rows...))
	})
	if err == nil {
		r.done[name] = true
	}
	return err
}
