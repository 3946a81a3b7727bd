package outbox

import (
	"context"
	"sync"
	"time"
)

const (
	// pauseMost bounds a pause.
	pauseMost = time.Minute
	// heldMost is how long a job waits for the end of a pause before it goes back to the
	// queue. To hand back each job at once would write the whole backlog.
	heldMost = 10 * time.Second
)

// A pause is a time in which nothing is sent, because the service or the client said so:
// while the service fails, the client sends one probe at a time. Without the pause, a worker
// would try its whole backlog meanwhile.
type pause struct {
	mu    sync.Mutex
	until time.Time
}

// left returns how long it lasts.
func (p *pause) left() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Until(p.until)
}

// extend makes it last until a time, and reports whether that is a second later than before.
func (p *pause) extend(until time.Time) (longer bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until.Before(p.until.Add(time.Second)) {
		return false
	}
	p.until = until
	return true
}

// hold waits for the end of the pause, for some time, and returns how long it still lasts.
func (w *worker) hold() time.Duration {
	if left := w.pause.left(); left > 0 {
		select {
		case <-time.After(min(left, heldMost)):
		case <-w.stopping.Done():
		}
	}
	return max(0, w.pause.left())
}

// obey pauses for as long as an outcome says, and tells the other workers.
func (w *worker) obey(ctx context.Context, result outcome) {
	until := time.Now().Add(min(result.wait, pauseMost))
	if result.wait <= 0 || !w.pause.extend(until) {
		return
	}
	w.Log.Warn("pausing", "until", timeText(until), "reason", result.reason)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, err := w.exec(ctx, `INSERT INTO outbox_pause (id, until, reason) VALUES (1, $1, $2)
		ON CONFLICT (id) DO UPDATE SET until = excluded.until, reason = excluded.reason`, timeText(until), result.reason)
	if err != nil {
		w.Log.Warn("the other workers do not see the pause", "error", err)
	}
}

// look takes over a pause of another worker.
func (w *worker) look(ctx context.Context) {
	until, err := one[string](ctx, w, `SELECT until FROM outbox_pause`)
	if err != nil && ctx.Err() == nil {
		w.Log.Warn("a pause of another worker may not be seen", "error", err)
	}
	w.pause.extend(parseTime(until))
}
