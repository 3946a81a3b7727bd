package outbox

import (
	"context"
	"fmt"
	"time"
)

const (
	// askTimeout is the time for an answer. A function that ignores its context is not waited
	// for any longer.
	askTimeout = 30 * time.Second
	// askEvery is how often a worker looks for refunds to ask about.
	askEvery = time.Second
	// askLatest is the longest time between two questions about a refund.
	askLatest = time.Hour
	// finder is who decides by FindOut.
	finder = "Config.FindOut"
)

// inquire asks about unknown refunds until ctx ends, at most Concurrency at once.
func (w *worker) inquire(ctx context.Context) {
	turns := make(chan struct{}, w.Concurrency)
	for look := time.Tick(askEvery); ; {
		select {
		case <-ctx.Done():
			return
		case <-look:
		}
		due, err := w.due(ctx, cap(turns))
		if err != nil && ctx.Err() == nil {
			w.Log.Warn("unknown refunds cannot be listed, and are tried again", "error", err)
		}
		for _, e := range due {
			select {
			case turns <- struct{}{}:
			case <-ctx.Done():
				return
			}
			w.asking.Add(1)
			go func() {
				defer func() { w.asking.Add(-1); <-turns }()
				w.ask(ctx, e)
			}()
		}
	}
}

// due returns unknown refunds to ask about now, the oldest first.
func (w *worker) due(ctx context.Context, most int) ([]Entry, error) {
	return w.entries(ctx, `AS this WHERE state = 'unknown' AND sent_at <= `+w.clock(-submitTimeout)+` AND sent_at > `+w.clock(-w.FindOutFor)+`
		AND NOT EXISTS (SELECT 1 FROM outbox_question AS q WHERE q.refund = this.id AND q.attempt = this.attempts AND q.next_at > `+w.clock(0)+`)
		ORDER BY sent_at, id LIMIT $1`, most)
}

// unasked tells whether a question is still to be asked for the first time. What follows from a
// question of this worker is written down before it no longer counts as asking.
func (w *worker) unasked(ctx context.Context) (bool, error) {
	return one[bool](ctx, w, `SELECT EXISTS (SELECT 1 FROM outbox_refund AS this WHERE this.state = 'unknown' AND this.sent_at > `+w.clock(-w.FindOutFor)+` AND NOT EXISTS (
		SELECT 1 FROM outbox_question AS q WHERE q.refund = this.id AND q.attempt = this.attempts))`)
}

// takeTurn takes the next question about a refund for this worker. Questions are as far apart as
// the request is old: after one minute, two, four, and so on.
func (w *worker) takeTurn(ctx context.Context, e Entry) (bool, error) {
	next := w.clock(min(max(time.Since(e.LastSent), submitTimeout), askLatest))
	n, err := w.exec(ctx, `INSERT INTO outbox_question (refund, attempt, next_at) VALUES ($1, $2, `+next+`)
		ON CONFLICT (refund) DO UPDATE SET attempt = $2, next_at = `+next+`
		WHERE outbox_question.attempt <> $2 OR outbox_question.next_at <= `+w.clock(0), e.Row, e.Attempts)
	return n == 1, err
}

// ask asks about a refund, and does what the answer says.
func (w *worker) ask(ctx context.Context, e Entry) {
	mine, err := w.takeTurn(ctx, e)
	if err != nil || !mine {
		return // of the database: it is asked later
	}
	answer, err := w.answer(ctx, e)
	if err == nil {
		err = w.follow(ctx, e, answer)
	}
	if err != nil && ctx.Err() == nil {
		w.Log.Warn("a question about an unknown refund failed, and is asked again", "error", err)
	}
}

// answer calls FindOut, and returns within askTimeout whatever it does.
func (w *worker) answer(ctx context.Context, e Entry) (Verdict, error) {
	type reply struct {
		verdict Verdict
		err     error
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	replied := make(chan reply, 1)
	go func() {
		defer cancel()
		r := reply{err: fmt.Errorf("FindOut ended its goroutine")}
		defer func() {
			if p := recover(); p != nil {
				r = reply{err: fmt.Errorf("FindOut panicked: %v", p)}
			}
			replied <- r
		}()
		r.verdict, r.err = w.FindOut(ctx, e)
	}()
	select {
	case r := <-replied:
		return r.verdict, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-replied: // it ended ctx
		return r.verdict, r.err
	default:
		return "", fmt.Errorf("FindOut: %w", context.Cause(ctx))
	}
}

// follow does what an answer says, unless the refund has another state or attempt by now.
func (w *worker) follow(ctx context.Context, e Entry, answer Verdict) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	c := &claim{Row: e.Row, Attempt: e.Attempts}
	why := fmt.Sprintf("asked %s after it was sent", time.Since(e.LastSent).Round(time.Second))
	switch {
	case answer == "":
		return nil
	case answer == Recorded, answer == NotRecorded && w.ResubmitNotRecorded:
		_, err := w.settle(ctx, c, Unknown, answer, finder, why)
		return err
	case answer == NotRecorded:
		_, err := w.exec(ctx, `UPDATE outbox_refund SET reason = reason || $3
			WHERE id = $1 AND attempts = $2 AND state = 'unknown' AND reason NOT LIKE '%' || $3`, e.Row, e.Attempts, saidNotRecorded)
		return err
	}
	return fmt.Errorf("FindOut returned %q, which is no answer", answer)
}

// saidNotRecorded tells a person why an unknown refund was not sent again.
const saidNotRecorded = "; FindOut says that it is not recorded"
