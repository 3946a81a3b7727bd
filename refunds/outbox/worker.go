package outbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"

	"github.com/carddata/carddata-go/refunds"
)

const (
	// submitTimeout is the age of a mark at which its request is over or will never
	// leave.
	submitTimeout = time.Minute
	// staleAfter is the age of a mark that is doubted: its request is over, and there
	// was time to write the outcome down. A worker that still does so comes late.
	staleAfter = 2 * submitTimeout
	// recoverEvery is how often a worker looks for what others left behind.
	recoverEvery = 5 * time.Second
)

// Config says how a worker works.
type Config struct {
	// Client submits the refunds; required. Its WithResubmit and WithMaxRetries have no
	// effect here: the worker repeats refunds, and marks each request. For the live service
	// it must not have WithHTTPClient, because only the library's own transport keeps a late
	// request from leaving.
	Client *refunds.Client
	// Concurrency is how many requests are in flight at most. 0: 16. It is also how many
	// refunds a worker that is killed leaves unknown at most.
	Concurrency int
	// Drain ends the worker when nothing is left that can be sent.
	Drain bool
	// Resubmit is your word that the service takes records with one refund_id as one refund,
	// which is not documented. A refund without a clear response is then sent again, and each
	// time is logged as a decision. false: it becomes Unknown.
	Resubmit bool
	// Log gets what an operator has to know about the workers, and River's warnings. It tells
	// nothing of single refunds, such as a 404 of each refund of a wrong account: alert on
	// Status.Reasons and Status.PendingSince. nil: nothing is logged.
	Log *slog.Logger
}

const (
	queueName = "outbox_refunds"
	jobKind   = "outbox_submit_refund"
	// jobAttempts keeps River from discarding a job: attempts are counted with the refund.
	jobAttempts = 10_000
)

// submitArgs are the arguments of a job: the refund's row, and none of its data, which
// anybody who looks at the queue would see.
type submitArgs struct {
	Row int64 `json:"row"`
}

// Kind names the jobs.
func (submitArgs) Kind() string { return jobKind }

// A worker sends refunds, one for each of River's jobs.
type worker struct {
	river.WorkerDefaults[submitArgs]
	Config
	*Outbox
	name     string
	pause    pause
	stopping context.Context // ends when no further refund is to be begun
	// unrecorded counts the outcomes that are not written down yet: meanwhile no other
	// refund is sent.
	unrecorded atomic.Int32
}

// Run submits what is enqueued until ctx ends. Then it waits for the outcomes of the
// requests in flight and writes them down. This takes a minute at most, or three if the
// database does not answer. If the process is killed before, these refunds are unknown.
//
// Several workers, in any number of processes, share the work. In SQLite one is as fast
// as several. Run fails if it cannot begin, or if the tables ([ErrTables]) or the settings of
// the database are wrong. Errors while it works are logged, and their work is done again.
func (o *Outbox) Run(ctx context.Context, config Config) error {
	if config.Client == nil {
		return errors.New("outbox: Config.Client is missing")
	}
	if err := errors.Join(o.check(ctx), o.durable(ctx)); err != nil {
		return err
	}
	config.Concurrency = cmp.Or(config.Concurrency, 16)
	config.Log = cmp.Or(config.Log, quiet)
	host, _ := os.Hostname()
	// The name tells workers apart, also those before and after a restart.
	w := &worker{Config: config, Outbox: o, name: fmt.Sprintf("%s-%08x", host, rand.Uint32()), stopping: ctx}
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	queue, err := o.newQueue(&river.Config{
		ID:      w.name,
		Logger:  slog.New(warnings{config.Log.Handler()}),
		Queues:  map[string]river.QueueConfig{queueName: {MaxWorkers: config.Concurrency}},
		Workers: workers,
		// Jobs are fetched at most this often, which bounds the throughput: the
		// default of 100 ms makes it 160 a second with 16 workers.
		FetchCooldown: 10 * time.Millisecond,
		// How soon new jobs are seen: Enqueue tells nobody of them. So there is nothing to
		// listen for, which would take a connection.
		FetchPollInterval: 250 * time.Millisecond,
		PollOnly:          true,
		// No timeout of River's cuts off a request, or the writing down of its
		// outcome: both have their own.
		JobTimeout: -1,
		// The default of an hour is how long a crash would hold refunds up. It must be
		// longer than a job can take.
		RescueStuckJobsAfter: 10 * time.Minute,
	})
	if err != nil {
		return fmt.Errorf("outbox: run: %w", err)
	}
	// Ending with ctx would cut off the requests that are in flight.
	if err := queue.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("outbox: run: %w", err)
	}
	err = w.watch(ctx)
	if ctx.Err() != nil {
		config.Log.Warn("stopping when the requests in flight have their outcomes")
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
	defer cancel()
	return errors.Join(err, queue.Stop(stopping))
}

// warnings passes warnings and errors on: River's Info is a line every few seconds.
type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

func (h warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{h.Handler.WithAttrs(attrs)}
}

func (h warnings) WithGroup(name string) slog.Handler { return warnings{h.Handler.WithGroup(name)} }

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
		w.look(ctx)
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
		left, err := one[bool](ctx, w, `SELECT EXISTS (SELECT 1 FROM outbox_refund AS this WHERE `+sendable+`)`)
		if err != nil && ctx.Err() == nil {
			w.Log.Warn("what is left cannot be counted, and is tried again", "error", err)
		} else if !left {
			return nil
		}
	}
}

// Work sends a refund if it is still to be sent, and records what became of it. River may
// run a job again when it did not see its end: the refund's state decides what that
// means, and never the job's.
func (w *worker) Work(ctx context.Context, job *river.Job[submitArgs]) error {
	if w.unrecorded.Load() > 0 {
		return river.JobSnooze(time.Second)
	}
	if left := w.hold(); left > 0 || w.stopping.Err() != nil {
		return river.JobSnooze(left)
	}
	c, result, err := w.send(ctx, job.Args.Row, time.Now())
	switch {
	case err != nil:
		return err // of the database: River tries again
	case result.event == "":
		return w.pass(ctx, job.Args.Row)
	}
	w.obey(ctx, result)
	if c == nil { // it could not be marked
		return river.JobSnooze(max(3*time.Second, result.wait))
	}
	w.record(ctx, c, result)
	switch {
	case result.event == eventRefused:
		return river.JobCancel(errors.New(result.reason))
	case result.suspended:
		return river.JobSnooze(result.wait)
	case result.event == eventUnsent, result.event == eventDoubted && w.Resubmit:
		return river.JobSnooze(max(backoff(c.Attempt), result.wait))
	}
	return nil
}

// sendable is true of a refund that is being sent, or can be.
const sendable = `(state = 'sending' OR state = 'pending' AND ` + nothingBefore + `)`

// pass deals with a refund that cannot be claimed. It is settled, or gets another job
// after a decision, or it waits for another record of its refund_id or another worker.
func (w *worker) pass(ctx context.Context, row int64) error {
	waits, err := one[bool](ctx, w, `SELECT EXISTS (SELECT 1 FROM outbox_refund AS this WHERE id = $1 AND `+sendable+`)`, row)
	if waits {
		return river.JobSnooze(time.Second)
	}
	return err
}

// errUnmarked keeps a request from leaving, because its refund is not to be sent now.
var errUnmarked = errors.New("the refund is not marked")

// send sends a pending refund once; repeating is left to the queue, so that a mark stands
// for one request. The mark is committed when nothing but sending is left: a worker that
// is killed while it waits for the client leaves no doubt behind. Without a claim, nothing
// was sent; without an event, the refund is not to be sent now.
func (w *worker) send(ctx context.Context, row int64, began time.Time) (c *claim, result outcome, err error) {
	pending, err := one[*claim](ctx, w, `SELECT id, account, content FROM outbox_refund AS this WHERE id = $1 AND state = 'pending' AND `+nothingBefore, row)
	if err != nil || pending == nil {
		return nil, outcome{}, err
	}
	record := new(refunds.Refund)
	decoder := json.NewDecoder(bytes.NewReader(pending.Content))
	decoder.UseNumber() // for the numbers in metadata
	if decoder.Decode(record) != nil {
		c, err := take(ctx, w, row, w.name)
		return c, outcome{event: eventRefused, response: response{reason: "the content is gone"}}, err
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
			c, err := take(ctx, w, row, w.name)
			if err == nil && c == nil {
				err = errUnmarked
			}
			marked <- mark{c, err}
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
	case result.event == eventRefused:
		c, err = take(ctx, w, row, w.name)
	case errors.Is(failure, errUnmarked):
		result, err = outcome{}, nil
	case !result.suspended && w.stopping.Err() == nil:
		_, err = w.exec(ctx, `UPDATE outbox_refund SET reason = $2 WHERE id = $1 AND state = 'pending' AND doubtful = 0`, row, result.reason)
	}
	return c, result, err
}

// record writes down what became of the refund, and does not give up before the
// process ends: the response will not come again. Meanwhile nothing else is sent.
func (w *worker) record(ctx context.Context, c *claim, result outcome) {
	ctx = context.WithoutCancel(ctx)
	err := w.recordOnce(ctx, c, result)
	if err == nil {
		return
	}
	w.Log.Warn("pausing: an outcome cannot be written down, and is tried again", "error", err)
	w.unrecorded.Add(1)
	for ; err != nil; err = w.recordOnce(ctx, c, result) {
		time.Sleep(time.Second)
	}
	if w.unrecorded.Add(-1) == 0 {
		w.Log.Warn("going on: the outcomes are written down")
	}
}

func (w *worker) recordOnce(ctx context.Context, c *claim, result outcome) error {
	ctx, cancel := context.WithTimeout(ctx, submitTimeout)
	defer cancel()
	if result.event != eventDoubted || !w.Resubmit {
		if done, err := move(ctx, w, c.Row, c.Attempt, Sending, result.event, &result.response); done || err != nil {
			return err
		}
	}
	return w.transact(ctx, func(tx session) error {
		if result.event == eventDoubted {
			return w.doubt(ctx, tx, c, result)
		}
		return w.recordLate(ctx, tx, c, result)
	})
}

// recordLate is for a worker that was taken for dead: its response is better than
// doubt. If it contradicts what somebody decided, that is for a person to look at. If
// nobody decided, the mark was settled by this worker, which then lost the database's
// acknowledgement.
func (w *worker) recordLate(ctx context.Context, tx session, c *claim, result outcome) error {
	said := string(result.event) + " " + result.reason
	for _, from := range []State{Unknown, Absent, Pending} {
		if !possible(from, result.event) {
			continue
		}
		done, err := w.settle(ctx, tx, c.Row, c.Attempt, from, result.event, &result.response, lateResponse, w.name, said)
		if done || err != nil {
			return err
		}
	}
	decided, err := all[Verdict](ctx, tx, `SELECT what FROM outbox_decision WHERE refund = $1 AND attempt = $2
		AND what NOT IN ($3, $4) ORDER BY id`, c.Row, c.Attempt, lateResponse, afterDecision)
	if err != nil || len(decided) == 0 || result.event == eventUnsent || result.event == eventAccepted && decided[len(decided)-1] == Recorded {
		return err
	}
	return note(ctx, tx, c.Row, c.Attempt, afterDecision, w.name, said)
}

// workerEnded is the doubt about the mark of a dead worker.
var workerEnded = outcome{event: eventDoubted, response: response{reason: "the worker ended"}}

// doubt makes the outcome of an attempt unknown. If the configuration says so, the
// refund is sent again; that decision is committed before it is acted upon.
func (w *worker) doubt(ctx context.Context, tx session, c *claim, result outcome) error {
	done, err := move(ctx, tx, c.Row, c.Attempt, Sending, result.event, &result.response)
	if err != nil || !done || !w.Resubmit {
		return err
	}
	if _, err := move(ctx, tx, c.Row, c.Attempt, Unknown, event(Resubmit), nil); err != nil {
		return err
	}
	return note(ctx, tx, c.Row, c.Attempt, event(Resubmit), "configuration", "Config.Resubmit after "+result.reason)
}

// backoff is the time until the next attempt.
func backoff(attempt int) time.Duration {
	d := min(5*time.Minute, time.Second<<min(attempt-1, 10))
	return d/2 + rand.N(d/2)
}
