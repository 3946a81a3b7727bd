package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/riverqueue/river"
	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/refunds"
)

const (
	// submitTimeout is the age of a marker at which its request is over, or will
	// never leave.
	submitTimeout = time.Minute
	// staleAfter is the age of a marker that is doubted, though its worker may live.
	// If that one still tries to write the outcome down, it is a late answer.
	staleAfter = 3 * time.Minute
)

// A worker sends refunds, one for each of River's jobs.
type worker struct {
	river.WorkerDefaults[submitArgs]
	name     string
	db       database
	client   *refunds.Client
	limiter  *rate.Limiter
	breaker  breaker
	resubmit bool            // the configuration's word on unknown outcomes
	stopping context.Context // ends when no further refund is to be begun
}

// Work sends a refund, if it is still to be sent, and records what became of it.
// River may run a job again whose end it did not see: the refund's state decides
// what that means, and never the job's.
func (w *worker) Work(ctx context.Context, job *river.Job[submitArgs]) error {
	// All waiting comes before the marker: a worker that is killed while it waits
	// leaves no doubt behind.
	turn, err := w.breaker.wait(w.stopping)
	if err == nil {
		err = w.limiter.Wait(w.stopping)
	}
	if err != nil {
		w.breaker.giveBack(turn)
		return river.JobSnooze(0)
	}
	c, err := take(ctx, w.db, job.Args.Row, w.name)
	if c == nil {
		w.breaker.giveBack(turn)
	}
	switch {
	case err != nil:
		return err // of the database: River tries again
	case c == nil:
		return w.pass(ctx, job.Args.Row)
	}
	o := w.send(ctx, c)
	w.breaker.report(o, time.Now())
	w.record(ctx, c, o)
	switch {
	case o.state == rejected:
		return river.JobCancel(errors.New("rejected: " + printable(o.reason)))
	case o.state == pending:
		return river.JobSnooze(max(backoff(c.attempt), o.wait))
	}
	return nil
}

// pass deals with a refund that cannot be claimed.
func (w *worker) pass(ctx context.Context, row int64) error {
	s, err := look(ctx, w.db, row)
	switch {
	case err != nil:
		return err
	case s.state == sending && time.Since(s.since) > staleAfter:
		return w.db.transact(ctx, func(tx transaction) error { return w.doubt(ctx, tx, row, s.attempt, noOutcome) })
	case s.state == sending:
		return river.JobSnooze(30 * time.Second)
	case s.state == pending && !s.stopped: // another record of the refund_id goes first
		return river.JobSnooze(time.Second)
	}
	return nil // it is settled, or a decision will give it a job
}

// send sends the refund once. Repeating is left to the queue, so that a marker
// stands for one request.
func (w *worker) send(ctx context.Context, c *claim) outcome {
	record := new(refunds.Refund)
	decoder := json.NewDecoder(bytes.NewReader(c.content))
	decoder.UseNumber() // for the numbers in metadata
	if decoder.Decode(record) != nil {
		return outcome{state: rejected, reason: "the content is gone"}
	}
	ctx, cancel := context.WithDeadline(ctx, c.marked.Add(submitTimeout))
	defer cancel()
	receipt, err := w.client.Submit(ctx, c.account, record, refunds.WithMaxRetries(0))
	return judge(receipt, err, c.refusals)
}

// record writes down what became of the refund, and does not give up before the
// process ends: the answer will not come again. Meanwhile nothing else is sent.
func (w *worker) record(ctx context.Context, c *claim, o outcome) {
	ctx = context.WithoutCancel(ctx)
	for held := false; ; {
		err := w.recordOnce(ctx, c, o)
		if err == nil {
			if held {
				w.breaker.release()
			}
			return
		}
		if !held {
			w.breaker.hold(err)
			held = true
		}
		time.Sleep(time.Second)
	}
}

func (w *worker) recordOnce(ctx context.Context, c *claim, o outcome) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if o.state != unknown || !w.resubmit {
		if done, err := settle(ctx, w.db, c.row, c.attempt, sending, o); done || err != nil {
			return err
		}
	}
	return w.db.transact(ctx, func(tx transaction) error {
		if o.state == unknown {
			return w.doubt(ctx, tx, c.row, c.attempt, o)
		}
		// Somebody took this worker for dead. The answer is better than doubt; after a
		// decision it is only noted, for somebody to look at.
		settled, err := settle(ctx, tx, c.row, c.attempt, unknown, o)
		if err != nil {
			return err
		}
		what := lateAnswer
		if !settled && o.state != pending {
			what = afterDecision
		}
		if err := note(ctx, tx, c.row, c.attempt, decision{w.name, what, o.state + " " + o.reason}); err != nil {
			return err
		}
		return wake(ctx, tx, c.row, 0)
	})
}

// noOutcome is the doubt about a marker that nobody is behind any more.
var noOutcome = outcome{state: unknown, reason: "the worker ended"}

// doubt makes the outcome of an attempt unknown. If the configuration says so, the
// refund is sent again; that decision is committed before it is acted upon.
func (w *worker) doubt(ctx context.Context, tx transaction, row int64, attempt int, o outcome) error {
	done, err := settle(ctx, tx, row, attempt, sending, o)
	if err != nil || !done || !w.resubmit {
		return err
	}
	d := decision{"configuration", decidedResubmit, "-resubmit-unknown after " + o.reason}
	_, err = decide(ctx, tx, row, attempt, unknown, d, max(backoff(attempt), o.wait))
	return err
}

// backoff is the time until the next attempt.
func backoff(attempt int) time.Duration {
	d := min(5*time.Minute, time.Second<<min(attempt-1, 10))
	return d/2 + rand.N(d/2)
}
