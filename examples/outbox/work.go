package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/riverqueue/river"
	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/examples/internal/target"
)

const workUsage = `usage: outbox work [flags]

Submits what is enqueued, until Ctrl-C or SIGTERM. It then begins nothing further,
and ends when the requests on the wire have their answers. A second signal ends it
at once, which leaves those refunds unknown.

  -db FILE            the SQLite file, ` + defaultFile + `; one worker at a time works it
  -concurrency N      requests in flight (16)
  -rate N             most requests a second of this worker
  -drain              ends when nothing is left that can be sent
  -resubmit-unknown   sends refunds whose outcome is unknown again, without asking.
                      It is your word that the service takes records with one
                      refund_id as one refund, which its documentation does not
                      say. Each time is logged as a decision

CARDDATA_REFUND_URL names the service, and CARDDATA_REFUND_TOKEN a bearer
credential, if it asks for one.

Exit code: 0 ended as asked; 1 failed; 2 usage or configuration.
`

var settings = target.Settings{URL: "CARDDATA_REFUND_URL", Optional: []string{"CARDDATA_REFUND_TOKEN"}}

type workFlags struct {
	concurrency     int
	rate            float64
	drain, resubmit bool
}

func (p *process) work(ctx context.Context, args []string) (int, error) {
	var at location
	var f workFlags
	flags := flag.NewFlagSet("outbox work", flag.ContinueOnError)
	at.flag(flags)
	flags.IntVar(&f.concurrency, "concurrency", 16, "")
	flags.Float64Var(&f.rate, "rate", 0, "")
	flags.BoolVar(&f.drain, "drain", false, "")
	flags.BoolVar(&f.resubmit, "resubmit-unknown", false, "")
	if code, ok := p.parse(flags, workUsage, args); !ok {
		return code, nil
	}
	switch _, set := p.env(settings.URL); {
	case flags.NArg() > 0:
		return 0, target.Usage("outbox: work takes no arguments besides flags (-h helps)")
	case f.concurrency < 1 || !(f.rate >= 0):
		return 0, target.Usage("outbox: -concurrency must be at least 1, -rate not negative")
	case !set:
		// A refund that a sandbox accepts would be lost.
		return 0, target.Usage("outbox: %s is missing (demo has a sandbox)", settings.URL)
	}
	service, err := target.Open(p.stderr, p.env, settings)
	if err != nil {
		return 0, err
	}
	defer service.Close()
	client, err := newClient(service.URL, service.Value("CARDDATA_REFUND_TOKEN"))
	if err != nil {
		return 0, err
	}
	db, err := p.open(ctx, at)
	if err != nil {
		return 0, err
	}
	defer db.close()

	w := &worker{name: workerName(), db: db, client: client, resubmit: f.resubmit, stopping: ctx}
	w.breaker.say = func(format string, args ...any) {
		fmt.Fprintln(p.stderr, target.Line(fmt.Sprintf(format, args...)))
	}
	w.limiter = rate.NewLimiter(rate.Inf, 1)
	if f.rate > 0 {
		// A burst of 1 never exceeds the rate, not even in the first second.
		w.limiter = rate.NewLimiter(rate.Limit(f.rate), 1)
	}
	held, err := db.hold(ctx, w.name)
	if err != nil {
		return 0, err
	}
	defer held.release()
	return 0, p.runQueue(ctx, w, held, &f)
}

// runQueue runs River until ctx ends or, with -drain, nothing is left.
func (p *process) runQueue(ctx context.Context, w *worker, held lease, f *workFlags) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	q, err := w.db.queue(&river.Config{
		ID:      w.name,
		Logger:  slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: f.concurrency}},
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
		// longer than a job can take, pauses of the breaker included.
		RescueStuckJobsAfter: 10 * time.Minute,
	})
	if err != nil {
		return err
	}
	r := &recovery{w, q, make(map[string]bool)}
	if err := r.run(ctx); err != nil {
		return err
	}
	// Ending with ctx would cut off the requests on the wire.
	if err := q.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	err = w.watch(ctx, p.stderr, held, r, f.drain)
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
	defer cancel()
	if ctx.Err() != nil {
		fmt.Fprintln(p.stderr, "stopping when the requests on the wire have their answers")
	}
	return errors.Join(err, q.Stop(stopping))
}

// watch looks after dead workers, and returns when the work is to end.
func (w *worker) watch(ctx context.Context, stderr io.Writer, held lease, r *recovery, drain bool) error {
	recovery := time.NewTicker(5 * time.Second)
	defer recovery.Stop()
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-recovery.C:
			// Going on without a sign of life would have others doubt what this worker
			// does. Whoever runs it starts it again.
			if err := held.check(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("outbox: the database is away: %w", err)
			}
			if err := r.run(ctx); err != nil && ctx.Err() == nil {
				fmt.Fprintln(stderr, target.Line(err.Error()))
			}
		case <-look.C:
			if !drain {
				continue
			}
			if left, err := anyLeft(ctx, w.db); err != nil || !left {
				return err
			}
		}
	}
}

// anyLeft tells whether a refund is being sent, or can be.
func anyLeft(ctx context.Context, db session) (left bool, err error) {
	err = db.query(ctx, func(scan scanner) error { return scan(&left) }, `
		SELECT EXISTS (SELECT 1 FROM outbox_refund AS this WHERE state = 'sending' OR state = 'pending' AND NOT EXISTS (
			SELECT 1 FROM outbox_refund AS other
			WHERE other.account = this.account AND other.refund_id = this.refund_id AND other.state = 'unknown'))`)
	return left, err
}

// workerName tells workers apart, also those before and after a restart.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	return fmt.Sprintf("%s-%08x", host, rand.Uint32())
}
