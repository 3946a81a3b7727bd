package outbox

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"

	"github.com/carddata/carddata-go/refunds"
)

const (
	// submitTimeout is the age of a mark at which its request is over or will never
	// leave. A worker that has not written the outcome down by then is taken for dead; if it
	// still does so, it comes late.
	submitTimeout = time.Minute
	// recoverEvery is how often a worker looks for what others left behind.
	recoverEvery = 5 * time.Second
	// heldMost is how long a job waits before it goes back to the queue while nothing may be
	// sent. To hand back each job at once would write the whole backlog.
	heldMost = 10 * time.Second
	// heldInTurn is how long a job of an account that waits keeps others from their turn, about as
	// long as if it was sent.
	heldInTurn = 100 * time.Millisecond
)

// Config says how a worker works.
type Config struct {
	// Client submits the refunds; required. Its WithResubmit and WithMaxRetries have no
	// effect here: the worker repeats refunds, and stores the state of each request. For the live service
	// it must not have WithHTTPClient, because only the library's own transport keeps a late
	// request from leaving.
	Client *refunds.Client
	// Concurrency is how many requests are in flight at most. 0: 16. It is also how many
	// refunds a worker that is killed leaves unknown at most.
	Concurrency int
	// Drain ends the worker when nothing is left that can be sent. It waits for refunds
	// that other workers send, too. If such a worker was killed, that takes a minute: before,
	// nobody knows that its refund is Unknown, which somebody has to look at. With FindOut, it
	// waits until each unknown refund was asked about once.
	Drain bool
	// Resubmit states that the service takes records with one refund_id as one refund, which
	// is not documented. A refund without a clear response is then sent again, and each
	// time is kept as a decision. false: it becomes Unknown.
	Resubmit bool
	// FindOut says whether the service has a refund that is Unknown, by whatever way to ask you
	// have: the processor's API, a ledger, a webhook that you stored. It returns [Recorded],
	// [NotRecorded], or "" if nobody can say yet. NotRecorded means that the service has none of
	// its attempts and will not get one that is still under way: the wait for something that
	// does not come is no reason to say so.
	//
	// It is asked a minute after the request was sent, when that can no longer leave, and then after
	// two minutes, four, eight, and so on up to an hour, by one of the workers. Concurrency bounds
	// the questions of a worker at one time. Each has 30 s. An error, a panic or a function that
	// does not return is logged, and the next question comes at its usual time. What it says is
	// kept as a decision of "Config.FindOut" before anything follows from it. nil: nobody is asked.
	FindOut func(ctx context.Context, e Entry) (Verdict, error)
	// FindOutFor is how long after it was sent a refund is asked about. Then it stays Unknown
	// until somebody decides. 0: a day.
	FindOutFor time.Duration
	// ResubmitNotRecorded sends a refund again after FindOut has said NotRecorded. If that was
	// not true, it is recorded twice. false: the refund stays Unknown, and Entry.Reason says
	// so. It does not apply to Tell.
	ResubmitNotRecorded bool
	// Log gets what an operator has to know about the workers, and River's warnings. It says
	// nothing of single refunds, such as a 404 of each refund of a wrong account: alert on
	// Status. nil: nothing is logged.
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

// A worker sends refunds: one for each of River's jobs, or the one of a Submit.
type worker struct {
	river.WorkerDefaults[submitArgs]
	Config
	*Outbox
	stopping    context.Context // ends when no further refund is to be begun
	begun       chan struct{}   // that of the attempt, if it is one of Submit
	pausedUntil atomic.Int64    // in seconds, for the log
	asking      atomic.Int64    // questions about unknown refunds

	mu    sync.Mutex
	rests map[string]time.Time // until when an account waits, because the service asked for it
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
	if err := o.ready(ctx); err != nil {
		return err
	}
	config.Concurrency = cmp.Or(config.Concurrency, 16)
	config.FindOutFor = cmp.Or(config.FindOutFor, 24*time.Hour)
	config.Log = cmp.Or(config.Log, quiet)
	w := &worker{Config: config, Outbox: o, stopping: ctx}
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	queue, err := o.newQueue(&river.Config{
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
	})
	if err != nil {
		return failed("run", err)
	}
	// Ending with ctx would cut off the requests that are in flight.
	if err := queue.Start(context.WithoutCancel(ctx)); err != nil {
		return failed("run", err)
	}
	asking, end := context.WithCancel(ctx)
	defer end()
	if w.FindOut != nil {
		go w.inquire(asking)
	}
	err = w.watch(ctx)
	end()
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

// watch looks after dead workers, and returns when the work is to end.
func (w *worker) watch(ctx context.Context) error {
	var next time.Time
	for look := time.Tick(200 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-look:
		}
		if began := time.Now(); began.After(next) {
			if err := errors.Join(w.bury(ctx), w.adopt(ctx)); err != nil && ctx.Err() == nil {
				w.Log.Warn("recovery failed, and is tried again", "error", err)
			}
			// To look at a backlog of millions takes a while.
			next = time.Now().Add(min(time.Minute, max(recoverEvery, 20*time.Since(began))))
		}
		if !w.Drain {
			continue
		}
		left, err := w.isLeft(ctx)
		if err != nil && ctx.Err() == nil {
			w.Log.Warn("what is left cannot be counted, and is tried again", "error", err)
		} else if !left {
			return nil
		}
	}
}

// isLeft tells whether something is left for a worker that drains: a question first, because what
// follows from one can be sent.
func (w *worker) isLeft(ctx context.Context) (left bool, err error) {
	if w.FindOut != nil {
		if left, err = w.unasked(ctx); err != nil || left || w.asking.Load() > 0 {
			return true, err
		}
	}
	return one[bool](ctx, w, `SELECT EXISTS (SELECT 1 FROM outbox_refund AS this WHERE `+sendable+`)`)
}

// nothingBefore tells of this refund that no other of its refund_id waits for a decision.
const nothingBefore = `NOT EXISTS (
	SELECT 1 FROM outbox_refund AS other WHERE other.account = this.account AND other.refund_id = this.refund_id
	AND other.id <> this.id AND other.state = 'unknown')`

// sendable is true of a refund that is being sent, or can be.
const sendable = `(state = 'sending' OR state = 'pending' AND ` + nothingBefore + `)`

// Work sends a refund if it is still to be sent, and records what became of it. River may
// run a job again when it did not see its end: the refund's state decides what that
// means, and never the job's.
func (w *worker) Work(ctx context.Context, job *river.Job[submitArgs]) error {
	c, result, err := w.send(ctx, job.Args.Row, time.Now())
	switch {
	case err != nil:
		return err // of the database: River tries again
	case result.event == "":
		return w.pass(ctx, job.Args.Row)
	case c == nil:
		if !result.suspended && !result.rests { // or a worker would write its whole backlog
			if err := w.postpone(ctx, job.Args.Row, result); err != nil {
				return err
			}
		}
		return river.JobSnooze(w.hold(result))
	}
	if result.event == eventUnsent && result.wait > 0 {
		w.rest(c.Account, result.wait)
	}
	c.wait = max(backoff(c.Attempt), result.wait)
	w.record(ctx, c, result)
	if result.event == eventUnsent || w.repeats(result) {
		return river.JobSnooze(c.wait)
	}
	return nil
}

// repeats tells whether the configuration has a refund of this outcome sent again.
func (w *worker) repeats(result outcome) bool {
	return w.Resubmit && result.event == eventDoubted && !result.final
}

// pass deals with a refund that cannot be claimed. It is settled, or gets another job
// after a decision, or it waits for another record of its refund_id or another worker.
func (w *worker) pass(ctx context.Context, row int64) error {
	next, err := all[string](ctx, w, `SELECT next_at FROM outbox_refund AS this WHERE id = $1 AND `+sendable, row)
	if len(next) > 0 {
		return river.JobSnooze(max(time.Second, time.Until(parseTime(next[0]))))
	}
	return err
}

// rest notes that the service asked an account to wait. Its other jobs would wait for that in the
// client, and those of other accounts behind them.
func (w *worker) rest(account string, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.rests, func(_ string, until time.Time) bool { return time.Until(until) <= 0 })
	if w.rests == nil {
		w.rests = make(map[string]time.Time)
	}
	w.rests[account] = time.Now().Add(wait)
}

// restsFor returns how long an account still waits.
func (w *worker) restsFor(account string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Until(w.rests[account])
}

// hold keeps a job whose refund got no mark, for some time, and returns how long it still
// has to wait. While the service fails, the client sends one probe at a time: without this,
// a worker would try its whole backlog meanwhile.
func (w *worker) hold(result outcome) time.Duration {
	wait, most := max(3*time.Second, result.wait), heldMost
	if result.rests {
		most = heldInTurn
	}
	until := time.Now().Add(wait)
	if told := w.pausedUntil.Load(); result.suspended && told < time.Now().Unix() && w.pausedUntil.CompareAndSwap(told, until.Unix()) {
		w.Log.Warn("pausing, because the service fails", "until", timeText(until))
	}
	select {
	case <-time.After(min(wait, most)):
	case <-w.stopping.Done():
	}
	return max(0, time.Until(until))
}
