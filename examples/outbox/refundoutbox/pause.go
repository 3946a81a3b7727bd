package refundoutbox

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	pauseAfter = 5 // failures in a row
	pauseFirst = time.Second
	pauseMost  = time.Minute
)

// A pause keeps a worker from turning a whole backlog into unknown refunds, when
// the service fails for a while: after some failures in a row that are not about a
// record, or when the service asks for it, nothing is sent for some time. Until a
// refund gets through again, one is sent at a time, and each failure doubles the
// pause.
type pause struct {
	log      *slog.Logger
	mu       sync.Mutex
	failures int
	until    time.Time
	trying   bool // a refund is on its way, after a failure
}

// enter returns how long to wait. Whoever need not wait has to leave.
func (p *pause) enter(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.until.Sub(now); d > 0 {
		return d
	}
	if p.trying {
		return time.Second
	}
	p.trying = p.failures >= pauseAfter
	return 0
}

// leave takes what became of a refund; nil: it was not sent. It returns until when a
// pause lasts that begins with it, if one does.
func (p *pause) leave(o *outcome) (until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trying = false
	switch {
	case o == nil:
		return until
	case o.trouble == "":
		if p.failures >= pauseAfter {
			p.log.Warn("going on")
		}
		p.failures = 0
		return until
	}
	p.failures++
	wait := min(o.wait, pauseMost)
	if o.trouble == "rate_limited" {
		wait = max(wait, pauseFirst)
	}
	if n := p.failures - pauseAfter; n >= 0 {
		wait = max(wait, min(pauseMost, pauseFirst<<min(n, 10)))
	}
	if wait == 0 || !time.Now().Add(wait).After(p.until) {
		return until
	}
	p.until = time.Now().Add(wait)
	if p.failures == pauseAfter {
		p.log.Warn("pausing: one refund is sent at a time, until one gets through", "condition", o.trouble, "reason", o.reason)
	}
	return p.until
}

// leave tells the pause what became of a refund. A pause is one of River's queue, for
// all workers and for whoever looks at River UI.
func (w *worker) leave(ctx context.Context, o *outcome) {
	until := w.pause.leave(o)
	if until.IsZero() {
		return
	}
	// Work waits without the database, too: what goes wrong here costs no more than
	// that others do not see the pause.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, err := w.db.Exec(ctx, `INSERT INTO outbox_pause (id, until, reason) VALUES (1, $1, $2)
		ON CONFLICT (id) DO UPDATE SET until = excluded.until, reason = excluded.reason`, timeText(until), o.reason)
	if err == nil {
		err = w.queue.QueuePause(ctx, Queue, nil)
	}
	if err != nil {
		w.Log.Warn("the pause does not show in the queue", "error", err)
	}
}

// resume ends a pause of this or another worker's whose time has come. One that a
// person began in River UI is left alone.
func (w *worker) resume(ctx context.Context) {
	over, err := one[string](ctx, w.db, `SELECT until FROM outbox_pause WHERE until <= $1`, timeText(time.Now()))
	if err == nil && over != "" {
		if err = w.queue.QueueResume(ctx, Queue, nil); err == nil {
			_, err = w.db.Exec(ctx, `DELETE FROM outbox_pause WHERE until = $1`, over)
		}
	}
	if err != nil && ctx.Err() == nil {
		w.Log.Warn("the queue is not resumed", "error", err)
	}
}
