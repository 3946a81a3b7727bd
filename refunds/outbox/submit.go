package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carddata/carddata-go/refunds"
)

// Submit books a refund, sends it now, in this process, and returns its Entry when its outcome is
// known or ctx ends. It needs no worker. The client is one as in [Config].
//
// A refund is booked once for an account and RefundID. A repeated call, in any process, waits for the
// outcome of the first one and gets its Entry, also if the content differs, such as Created. Another amount or
// currency is [ErrAmountChanged]. An update of a refund goes through [Outbox.Enqueue]; Submit with the
// same content is then about the update.
//
// The end of ctx ends the wait and not the request, so a caller who leaves makes no refund unknown. If the
// request has not begun, and no other caller waits for it, it does not begin. [Outbox.Close] waits for a
// request, which ends a minute after Submit began it. A ctx without a deadline has one of a minute. The Entry is
//
//   - [Accepted], with the Receipt.
//   - [Rejected], with the Reason. A corrected record goes through Enqueue.
//   - [Unknown]. It is not sent again before somebody has found out: see the package comment.
//   - [Sending], if ctx has ended. A repeated call waits on.
//   - [Pending], with the Reason of a try that failed, or none if ctx ended while it waited to be sent: it is
//     not recorded. A repeated call sends it from NextAt on, or a worker 20 seconds later: decide [Closed]
//     before you pay in another way. The same call tries again if NextAt is before the deadline of ctx, but
//     not if the set-up has to be corrected first, as after a 401.
//
// An error is about an argument ([refunds.ErrInvalidArgument]), the amount, the database or its settings,
// or a ctx that ended before the refund was booked. It is never about the service. After an error of the
// database or of ctx, repeat the call.
func (o *Outbox) Submit(ctx context.Context, client *refunds.Client, item Item) (Entry, error) {
	switch {
	case client == nil:
		return Entry{}, fmt.Errorf("outbox: submit: %w: no client", refunds.ErrInvalidArgument)
	case item.AllowChange:
		return Entry{}, fmt.Errorf("outbox: submit: %w: AllowChange is for Enqueue", refunds.ErrInvalidArgument)
	case o.closing.Err() != nil:
		return Entry{}, errors.New("outbox: submit: the outbox is closed")
	}
	b, err := newBooking(item)
	if err != nil {
		return Entry{}, err
	}
	if err := o.ready(ctx); err != nil {
		return Entry{}, err
	}
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, submitTimeout)
		defer cancel()
	}
	row, err := o.bookOnce(ctx, b)
	if err != nil {
		return Entry{}, failed("submit", err)
	}
	e, err := o.wait(ctx, client, row)
	return e, failed("submit", err)
}

// bookOnce stores the first record of a refund_id, without a job. It returns its row, or that of
// the record that stands in its place.
func (o *Outbox) bookOnce(ctx context.Context, b booking) (int64, error) {
	added, err := one[int64](ctx, o, `
		INSERT INTO outbox_refund (account, refund_id, number, digest, content, amount, currency, enqueued_at)
		VALUES ($1, $2, 1, $3, $4, $5, $6, `+o.clock(0)+`) ON CONFLICT DO NOTHING RETURNING id`,
		b.account, b.refundID, b.digest, b.content, b.amount, b.currency)
	if err != nil || added != 0 {
		return added, err
	}
	first, err := one[struct {
		ID      int64
		Changed bool
	}](ctx, o, `SELECT id, (amount IS DISTINCT FROM CAST($4 AS BIGINT) OR currency <> $5) AS changed
		FROM outbox_refund WHERE account = $1 AND refund_id = $2 ORDER BY (digest = $3) DESC, id LIMIT 1`,
		b.account, b.refundID, b.digest, b.amount, b.currency)
	if err == nil && first.Changed {
		err = amountChanged(first.ID)
	}
	return first.ID, err
}

const (
	pollFirst = 20 * time.Millisecond
	pollMost  = 500 * time.Millisecond
)

// wait sends a refund whenever it is due, until its outcome is known or ctx ends.
func (o *Outbox) wait(ctx context.Context, client *refunds.Client, row int64) (Entry, error) {
	deadline, _ := ctx.Deadline()
	var last outcome
	for pause := pollFirst; ; pause = min(2*pause, pollMost) {
		e, err := o.look(ctx, row)
		if err != nil || ctx.Err() != nil || o.closing.Err() != nil || e.State != Pending && e.State != Sending {
			return e, err
		}
		if e.State == Pending && (last.setup || e.NextAt.After(deadline)) {
			return e, nil
		}
		if a := o.attempt(ctx, client, e); a != nil {
			select {
			case <-a.done:
			case <-ctx.Done():
				o.leave(a)
				continue
			}
			if a.err != nil {
				return e, a.err
			}
			if last = a.outcome; last.event != "" { // else the refund is not to be sent now
				pause = pollFirst / 2
				continue
			}
		}
		select {
		case <-time.After(max(pause, time.Until(e.NextAt))):
		case <-ctx.Done():
		}
	}
}

// look reads a refund, also if ctx has ended.
func (o *Outbox) look(ctx context.Context, row int64) (Entry, error) {
	read := func(ctx context.Context) (Entry, error) {
		found, err := entriesIn(ctx, o, withReceipt, `WHERE id = $1`, row)
		if err == nil && len(found) == 0 {
			err = errors.New("somebody has deleted the refund")
		}
		if err != nil {
			return Entry{Row: row}, err
		}
		return found[0], nil
	}
	e, err := read(ctx)
	if ctx.Err() != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		return read(ctx)
	}
	return e, err
}

// An attempt sends a refund in this process. Its callers wait for it.
type attempt struct {
	callers int           // guarded by Outbox.mu
	stop    func()        // has no effect once it has begun
	begun   chan struct{} // closed when the refund is marked, or cannot be
	done    chan struct{}
	outcome
	err error
}

// attempt returns the attempt at a refund that is under way in this process, or begins one if the
// refund is due.
func (o *Outbox) attempt(ctx context.Context, client *refunds.Client, e Entry) *attempt {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.attempts[e.Row]
	if a == nil && e.State == Pending && time.Until(e.NextAt) <= 0 && o.closing.Err() == nil {
		stopping, stop := context.WithCancel(o.closing)
		a = &attempt{stop: stop, begun: make(chan struct{}), done: make(chan struct{})}
		o.attempts[e.Row] = a
		w := &worker{Config: Config{Client: client, Log: quiet}, Outbox: o, stopping: stopping, begun: a.begun}
		go w.run(context.WithoutCancel(ctx), e.Row, a)
	}
	if a != nil {
		a.callers++
	}
	return a
}

// leave stops an attempt that nobody waits for and that has not begun, so that the caller knows that nothing is sent.
func (o *Outbox) leave(a *attempt) {
	o.mu.Lock()
	a.callers--
	left := a.callers == 0
	o.mu.Unlock()
	if left {
		a.stop()
		select {
		case <-a.begun:
		case <-a.done:
		}
	}
}

// run makes an attempt.
func (w *worker) run(ctx context.Context, row int64, a *attempt) {
	o := w.Outbox
	defer func() {
		a.stop()
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.attempts, row)
		close(a.done)
	}()
	var c *claim
	switch c, a.outcome, a.err = w.send(ctx, row, time.Now()); {
	case a.err != nil || a.event == "":
	case c == nil:
		a.err = w.postpone(ctx, row, a.outcome)
	default:
		c.wait = max(backoff(c.Attempt), a.outcome.wait)
		w.record(ctx, c, a.outcome)
	}
}

// Close begins no further refund of Submit, and waits for the outcome of what is in flight, which takes
// a minute at most, or for the end of ctx. A Submit that waits returns what is known, and a new one
// fails. What was booked and not begun is sent by a worker, or by a repeated Submit of another process.
// Run ends with its own context.
func (o *Outbox) Close(ctx context.Context) error {
	o.mu.Lock()
	o.close()
	var left []*attempt
	for _, a := range o.attempts {
		left = append(left, a)
	}
	o.mu.Unlock()
	for _, a := range left {
		select {
		case <-a.done:
		case <-ctx.Done():
			return fmt.Errorf("outbox: close: refunds are in flight: %w", ctx.Err())
		}
	}
	return nil
}
