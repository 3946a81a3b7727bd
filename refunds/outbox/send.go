package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/carddata/carddata-go/refunds"
)

// errUnmarked keeps a request from leaving, because its refund is not to be sent now.
var errUnmarked = errors.New("the refund is not marked")

// send sends a pending refund once; repeating is left to the queue, so that a mark stands
// for one request. The mark is committed when nothing but sending is left: a worker that
// is killed while it waits for the client leaves no doubt behind. Without a claim, nothing
// was sent; without an event, the refund is not to be sent now.
func (w *worker) send(ctx context.Context, row int64, began time.Time) (c *claim, result outcome, err error) {
	pending, err := one[*claim](ctx, w, `SELECT account, content FROM outbox_refund AS this 
		WHERE id = $1 AND state = 'pending' AND next_at <= `+w.clock(0)+` AND `+nothingBefore, row)
	if err != nil || pending == nil {
		return nil, outcome{}, err
	}
	if wait := w.restsFor(pending.Account); wait > 0 {
		return nil, outcome{event: eventUnsent, wait: wait, rests: true}, nil
	}
	record := new(refunds.Refund)
	decoder := json.NewDecoder(bytes.NewReader(pending.Content))
	decoder.UseNumber() // for the numbers in metadata
	if err := decoder.Decode(record); err != nil {
		return nil, outcome{}, err
	}
	// The last step before the first byte looks at the deadline by both clocks: a process can
	// be frozen there, and its timers with it. The mark is younger than this deadline.
	submitting, cancel := context.WithDeadline(ctx, began.Add(submitTimeout))
	defer cancel()
	stillWaits := context.AfterFunc(w.stopping, cancel)
	type mark struct {
		claim *claim
		err   error
	}
	marked := make(chan mark, 1)
	receipt, failure := w.Client.Submit(submitting, pending.Account, record, refunds.WithMaxRetries(0),
		refunds.WithBeforeSend(func(ctx context.Context) error {
			if time.Since(began) > submitTimeout/2 || !stillWaits() { // the request needs time, too
				return errUnmarked
			}
			c, err := take(ctx, w, row)
			if err == nil && c == nil {
				err = errUnmarked
			}
			marked <- mark{c, err}
			if w.begun != nil {
				close(w.begun)
			}
			return err
		}))
	stillWaits()
	select {
	case m := <-marked:
		c, err = m.claim, m.err
	default:
	}
	result = judge(receipt, failure)
	switch {
	case c != nil:
	case err != nil && err != errUnmarked:
	case errors.Is(failure, errUnmarked):
		result, err = outcome{}, nil
	}
	return c, result, err
}

// postpone writes down why a refund got no mark, and when it is due.
func (w *worker) postpone(ctx context.Context, row int64, result outcome) error {
	if w.stopping.Err() != nil {
		return nil
	}
	_, err := w.exec(ctx, `UPDATE outbox_refund SET reason = $2, next_at = `+w.clock(max(time.Second, result.wait))+` WHERE id = $1 AND state = 'pending'`, row, result.reason)
	return err
}

// record writes down what became of the refund, and does not give up before the
// process ends: the response will not come again.
func (w *worker) record(ctx context.Context, c *claim, result outcome) {
	ctx = context.WithoutCancel(ctx)
	err := w.recordOnce(ctx, c, result)
	if err != nil {
		w.Log.Warn("an outcome cannot be written down, and is tried again", "error", err)
	}
	for ; err != nil; err = w.recordOnce(ctx, c, result) {
		time.Sleep(time.Second)
	}
}

func (w *worker) recordOnce(ctx context.Context, c *claim, result outcome) error {
	ctx, cancel := context.WithTimeout(ctx, submitTimeout)
	defer cancel()
	if c.Doubtful && result.event == eventRefused {
		result.reason += "; an earlier attempt is in doubt"
	}
	// Unknown: the worker was taken for dead. Its response is better than doubt.
	for _, from := range []State{Sending, Unknown} {
		if done, err := move(ctx, w, c, from, result.event, &result.response); err != nil {
			return err
		} else if done {
			break
		}
	}
	if !w.repeats(result) {
		return nil
	}
	_, err := w.settle(ctx, c, Unknown, Resubmit, "configuration", "Config.Resubmit after "+result.reason)
	return err
}

// workerEnded is the outcome of a dead worker's attempt.
var workerEnded = outcome{event: eventDoubted, response: response{reason: "the worker ended"}}

// bury makes the marks unknown that no worker has dealt with, most likely because it
// is dead. The request of such a mark is over, and cannot leave any more.
func (w *worker) bury(ctx context.Context) error {
	marks, err := all[claim](ctx, w, `SELECT id, attempts FROM outbox_refund WHERE `+overdue(w))
	for _, c := range marks {
		err = errors.Join(err, w.recordOnce(ctx, &c, workerEnded))
	}
	return err
}

// orphanedAfter is how long a refund without a job is due, or a job runs without having begun its
// refund, when that gets another one. Until then, a Submit may send it.
const orphanedAfter = 20 * time.Second

// adopt gives jobs to the pending refunds that no job will send, and that nothing of their
// refund_id stands before: somebody decided, a worker was killed, a backup was restored, or a
// person deleted a job. A job that has run for long does not count: River leaves the jobs of
// dead workers for longer.
func (w *worker) adopt(ctx context.Context) error {
	// As River's tables have a time in SQLite; PostgreSQL reads it, too.
	running := time.Now().Add(-orphanedAfter).UTC().Format("'2006-01-02 15:04:05Z'")
	waited := w.clock(-orphanedAfter)
	orphans := `SELECT id FROM outbox_refund AS this WHERE state = 'pending' AND next_at <= ` + waited + ` AND enqueued_at <= ` + waited + ` AND ` + nothingBefore + `
		EXCEPT SELECT CAST(args->>'row' AS BIGINT) FROM ` + w.river("job") + ` WHERE kind = '` + jobKind + `'
		AND finalized_at IS NULL AND (state <> 'running' OR attempted_at > ` + running + `)
		ORDER BY 1 LIMIT 5000`
	found, err := one[bool](ctx, w, `SELECT EXISTS (SELECT 1 FROM (`+orphans+`) AS orphan)`)
	if err != nil || !found {
		return err
	}
	return w.giveJobs(ctx, w, `id IN (SELECT id FROM (`+orphans+`) AS orphan)`)
}

// backoff is the time until the next attempt.
func backoff(attempt int) time.Duration {
	d := min(5*time.Minute, time.Second<<min(attempt-1, 10))
	return d/2 + rand.N(d/2)
}
