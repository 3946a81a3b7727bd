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
// the service fails for a while. After some failures in a row that are not about a
// record, or when the service asks for it, it pauses River's queue, for all workers
// and for whoever looks at River UI. Until a refund gets through again, one is sent
// at a time, and each failure doubles the pause.
//
// It also holds everything back while an outcome cannot be written down.
type pause struct {
	db    Session
	queue queue
	log   *slog.Logger

	mu         sync.Mutex
	failures   int
	until      time.Time
	trying     bool // a refund is on its way, after a failure
	unrecorded int  // outcomes
}

// enter returns how long to wait. Whoever need not wait has to leave.
func (p *pause) enter(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.until.Sub(now); d > 0 {
		return d
	}
	if p.unrecorded > 0 || p.trying {
		return time.Second
	}
	p.trying = p.failures >= pauseAfter
	return 0
}

// leave takes what became of a refund; nil: it was not sent.
func (p *pause) leave(ctx context.Context, o *outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trying = false
	switch {
	case o == nil:
		return
	case o.trouble == "":
		if p.failures >= pauseAfter {
			p.log.Warn("going on")
		}
		p.failures = 0
		return
	}
	p.failures++
	wait := min(o.wait, pauseMost)
	if o.trouble == "rate_limited" {
		wait = max(wait, pauseFirst)
	}
	if n := p.failures - pauseAfter; n >= 0 {
		wait = max(wait, min(pauseMost, pauseFirst<<min(n, 10)))
	}
	until := time.Now().Add(wait)
	if wait == 0 || !until.After(p.until) {
		return
	}
	p.until = until
	if p.failures == pauseAfter {
		p.log.Warn("pausing: one refund is sent at a time, until one gets through", "condition", o.trouble, "reason", o.reason)
	}
	if p.queue == nil {
		return
	}
	// Work waits without the database, too: what goes wrong here costs no more than
	// that others do not see the pause.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, err := p.db.Exec(ctx, `INSERT INTO outbox_pause (id, until, reason) VALUES (1, $1, $2)
		ON CONFLICT (id) DO UPDATE SET until = excluded.until, reason = excluded.reason`, timeText(until), o.reason)
	if err == nil {
		err = p.queue.QueuePause(ctx, Queue, nil)
	}
	if err != nil {
		p.log.Warn("the pause does not show in the queue", "error", err)
	}
}

// resume ends a pause of this or another worker's whose time has come. One that a
// person began in River UI is left alone.
func (p *pause) resume(ctx context.Context) {
	over, err := all(ctx, p.db, only[string], `SELECT until FROM outbox_pause WHERE until <= $1`, timeText(time.Now()))
	if err == nil && len(over) > 0 {
		if err = p.queue.QueueResume(ctx, Queue, nil); err == nil {
			_, err = p.db.Exec(ctx, `DELETE FROM outbox_pause WHERE until = $1`, over[0])
		}
	}
	if err != nil && ctx.Err() == nil {
		p.log.Warn("the queue is not resumed", "error", err)
	}
}

// hold holds everything back while n outcomes are not written down.
func (p *pause) hold(n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.unrecorded += n; {
	case n > 0 && p.unrecorded == 1:
		p.log.Warn("pausing: an outcome cannot be written down, and is tried again", "error", err)
	case p.unrecorded == 0:
		p.log.Warn("going on: the outcomes are written down")
	}
}
