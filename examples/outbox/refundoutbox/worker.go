package refundoutbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http/httptrace"
	"os"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/refunds"
)

const (
	// submitTimeout is the age of a marker at which its request is over, or will
	// never leave.
	submitTimeout = time.Minute
	// staleAfter is the age of a marker that is doubted: its request is over, and there
	// was time to write its outcome down. A worker that still does so comes late.
	staleAfter = 2 * submitTimeout
	// recoverEvery is how often a worker looks for what others left behind.
	recoverEvery = 5 * time.Second
)

// Config says how a worker works.
type Config struct {
	Client      *refunds.Client
	Concurrency int          // requests in flight; 0: 16
	Rate        rate.Limit   // most requests a second of this worker; 0: any
	Drain       bool         // end when nothing is left that can be sent
	Resubmit    bool         // the configuration's word: send again what has no clear response
	Resolver    Resolver     // is asked about unknown refunds; nil: nobody is
	Log         *slog.Logger // nil: slog.Default
}

// A worker sends refunds, one for each of River's jobs.
type worker struct {
	river.WorkerDefaults[submitArgs]
	Config
	name     string
	db       *Database
	limiter  *rate.Limiter
	queue    queue
	pause    pause
	stopping context.Context // ends when no further refund is to be begun
	// unrecorded counts the outcomes that are not written down yet: meanwhile no other
	// refund is sent.
	unrecorded atomic.Int32
}

// Run works refunds until ctx ends, and then until the requests on the wire have
// their outcomes, which are written down.
func Run(ctx context.Context, db *Database, config Config) error {
	config.Concurrency = cmp.Or(config.Concurrency, 16)
	config.Rate = cmp.Or(config.Rate, rate.Inf)
	config.Log = cmp.Or(config.Log, slog.Default())
	host, _ := os.Hostname()
	// The name tells workers apart, also those before and after a restart. A burst
	// of 1 never exceeds the rate, not even in the first second.
	w := &worker{Config: config, name: fmt.Sprintf("%s-%08x", host, rand.Uint32()), db: db,
		limiter: rate.NewLimiter(config.Rate, 1), pause: pause{log: config.Log}, stopping: ctx}
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	var err error
	w.queue, err = db.newQueue(&river.Config{
		ID:      w.name,
		Logger:  config.Log,
		Queues:  map[string]river.QueueConfig{Queue: {MaxWorkers: config.Concurrency}},
		Workers: workers,
		// Jobs are fetched at most this often, which bounds the throughput: the
		// default of 100 ms makes it 160 a second with 16 workers.
		FetchCooldown: 10 * time.Millisecond,
		// How soon new jobs are seen where the database does not tell of them, as
		// SQLite does not.
		FetchPollInterval: 250 * time.Millisecond,
		// No time-out of River's cuts off a request, or the writing down of its
		// outcome: both have their own.
		JobTimeout: -1,
		// The default of an hour is how long a crash would hold refunds up. It must be
		// longer than a job can take.
		RescueStuckJobsAfter: 10 * time.Minute,
	})
	if err != nil {
		return err
	}
	// Ending with ctx would cut off the requests on the wire.
	if err := w.queue.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	err = w.watch(ctx)
	if ctx.Err() != nil {
		config.Log.Warn("stopping when the requests on the wire have their outcomes")
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
	defer cancel()
	return errors.Join(err, w.queue.Stop(stopping))
}

// watch looks after dead workers and the pause, and returns when the work is to
// end.
func (w *worker) watch(ctx context.Context) error {
	var next time.Time
	for look := time.Tick(200 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-look:
		}
		w.resume(ctx)
		if began := time.Now(); began.After(next) {
			if err := w.recover(ctx); err != nil && ctx.Err() == nil {
				w.Log.Warn("recovery failed, and is tried again", "error", err)
			}
			// To look at a backlog of millions takes a while.
			next = time.Now().Add(min(time.Minute, max(recoverEvery, 20*time.Since(began))))
		}
		if !w.Drain {
			continue
		}
		left, err := one[bool](ctx, w.db, `SELECT EXISTS (SELECT 1 FROM outbox_refund AS this WHERE `+sendable+`)`)
		if err != nil || !left {
			return err
		}
	}
}

// Work sends a refund, if it is still to be sent, and records what became of it.
// River may run a job again whose end it did not see: the refund's state decides
// what that means, and never the job's.
func (w *worker) Work(ctx context.Context, job *river.Job[submitArgs]) error {
	// All waiting comes before the marker: a worker that is killed while it waits
	// leaves no doubt behind.
	if err := w.limiter.Wait(w.stopping); err != nil {
		return river.JobSnooze(0)
	}
	if w.unrecorded.Load() > 0 {
		return river.JobSnooze(time.Second)
	}
	if wait := w.pause.enter(time.Now()); wait > 0 || w.stopping.Err() != nil {
		return river.JobSnooze(wait)
	}
	c, err := take(ctx, w.db, job.Args.Row, w.name)
	if err != nil || c == nil {
		w.pause.leave(nil)
		if err != nil {
			return err // of the database: River tries again
		}
		return w.pass(ctx, job.Args.Row)
	}
	o := w.send(ctx, c)
	w.leave(ctx, &o)
	w.record(ctx, c, o)
	switch {
	case o.event == eventRefused:
		return river.JobCancel(errors.New(o.reason))
	case o.event == eventUnsent, o.event == eventDoubted && w.Resubmit:
		return river.JobSnooze(max(backoff(c.Attempt), o.wait))
	}
	return nil
}

// sendable is true of a refund that is being sent, or can be.
const sendable = `(state = 'sending' OR state = 'pending' AND ` + nothingBefore + `)`

// pass deals with a refund that cannot be claimed. It is settled, or gets another job
// after a decision, or it waits for another record of its refund_id or another worker.
func (w *worker) pass(ctx context.Context, row int64) error {
	waits, err := one[bool](ctx, w.db, `SELECT EXISTS (SELECT 1 FROM outbox_refund AS this WHERE id = $1 AND `+sendable+`)`, row)
	if waits {
		return river.JobSnooze(time.Second)
	}
	return err
}

// send sends the refund once. Repeating is left to the queue, so that a marker
// stands for one request.
func (w *worker) send(ctx context.Context, c *claim) outcome {
	record := new(refunds.Refund)
	decoder := json.NewDecoder(bytes.NewReader(c.Content))
	decoder.UseNumber() // for the numbers in metadata
	if decoder.Decode(record) != nil {
		return outcome{event: eventRefused, response: response{reason: "the content is gone"}}
	}
	ctx, cancel := withDeadline(ctx, c.marked.Add(submitTimeout))
	defer cancel()
	return judge(w.Client.Submit(ctx, c.Account, record, refunds.WithMaxRetries(0)))
}

// withDeadline ends a request at the deadline, and keeps one that is late from
// leaving. A process can be frozen between the commit of its marker and the first byte
// of the request, and its timers with it. So the last step before the network looks at
// the deadline once more, and closes the connection of a request that is late: the
// library knows that nothing was written to it, and reports the refund as not sent.
func withDeadline(ctx context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if now := time.Now(); late(deadline, now, now.Round(0)) {
				info.Conn.Close()
			}
		},
	})
	return context.WithDeadline(ctx, deadline)
}

// late goes by both clocks: the monotonic one stands still while the machine is
// suspended, and the wall clock can be set back.
func late(deadline, monotonic, wall time.Time) bool {
	return !monotonic.Before(deadline) || !wall.Before(deadline)
}

// record writes down what became of the refund, and does not give up before the
// process ends: the response will not come again. Meanwhile nothing else is sent.
func (w *worker) record(ctx context.Context, c *claim, o outcome) {
	ctx = context.WithoutCancel(ctx)
	err := w.recordOnce(ctx, c, o)
	if err == nil {
		return
	}
	w.Log.Warn("pausing: an outcome cannot be written down, and is tried again", "error", err)
	w.unrecorded.Add(1)
	for ; err != nil; err = w.recordOnce(ctx, c, o) {
		time.Sleep(time.Second)
	}
	if w.unrecorded.Add(-1) == 0 {
		w.Log.Warn("going on: the outcomes are written down")
	}
}

func (w *worker) recordOnce(ctx context.Context, c *claim, o outcome) error {
	ctx, cancel := context.WithTimeout(ctx, submitTimeout)
	defer cancel()
	if o.event != eventDoubted || !w.Resubmit {
		if done, err := move(ctx, w.db, c.Row, c.Attempt, Sending, o.event, &o.response); done || err != nil {
			return err
		}
	}
	return w.db.Transact(ctx, func(tx Tx) error {
		if o.event == eventDoubted {
			return w.doubt(ctx, tx, c, o)
		}
		return w.recordLate(ctx, tx, c, o)
	})
}

// recordLate is for a worker that was taken for dead: its response is better than
// doubt. If it says otherwise than somebody decided, that is for a person to look
// at. If nobody decided, the marker was settled by this worker, which then lost
// the database's acknowledgement.
func (w *worker) recordLate(ctx context.Context, tx Tx, c *claim, o outcome) error {
	late := Decision{w.name, lateResponse, string(o.event) + " " + o.reason}
	for _, from := range []State{Unknown, Absent, Pending} {
		if !Possible(from, o.event) {
			continue
		}
		if done, err := settle(ctx, tx, c.Row, c.Attempt, from, o.event, &o.response, late); done || err != nil {
			return err
		}
	}
	decided, err := all[Event](ctx, tx, `SELECT what FROM outbox_decision WHERE refund = $1 AND attempt = $2
		AND what NOT IN ($3, $4) ORDER BY id`, c.Row, c.Attempt, lateResponse, afterDecision)
	if err != nil || len(decided) == 0 || o.event == eventUnsent || o.event == eventAccepted && decided[len(decided)-1] == DecideAccepted {
		return err
	}
	late.What = afterDecision
	return note(ctx, tx, c.Row, c.Attempt, late)
}

// workerEnded is the doubt about the marker of a dead worker.
var workerEnded = outcome{event: eventDoubted, response: response{reason: "the worker ended"}}

// doubt makes the outcome of an attempt unknown. If the configuration says so, the
// refund is sent again; that decision is committed before it is acted upon.
func (w *worker) doubt(ctx context.Context, tx Tx, c *claim, o outcome) error {
	done, err := move(ctx, tx, c.Row, c.Attempt, Sending, o.event, &o.response)
	if err != nil || !done || !w.Resubmit {
		return err
	}
	if _, err := move(ctx, tx, c.Row, c.Attempt, Unknown, DecideResubmit, nil); err != nil {
		return err
	}
	return note(ctx, tx, c.Row, c.Attempt, Decision{"configuration", DecideResubmit, "-resubmit-unknown after " + o.reason})
}

// backoff is the time until the next attempt.
func backoff(attempt int) time.Duration {
	d := min(5*time.Minute, time.Second<<min(attempt-1, 10))
	return d/2 + rand.N(d/2)
}
