package updater

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// ErrNotReady: the job was not ready within [WaitOptions.MaxWait]. The [*Error] describes
// the service's last response. Try again later. Without WaitOptions nothing is known of
// a job that is not ready: a 202 is [ErrBadResponse], for example.
var ErrNotReady = transport.NewCondition("not_ready", "not ready", true)

// WaitOptions say how to wait for a job. The states of a job, and the response for a
// job that is not ready, are not documented: NotReady says what you know about them.
// They are for [Client.DownloadWhenReady] and [FileOptions.Wait], where the zero value
// does not wait; any other needs NotReady.
type WaitOptions struct {
	// NotReady reports whether a failure means that the job is not ready. Any other
	// failure ends the wait, except one that is Retryable, such as an outage, after the
	// job was reported not ready. A 202, a 204, and a 200 with the documented error
	// object are failures too, with that StatusCode. NotReady is not called without a
	// response. For example:
	//
	//	func(e *updater.Error) bool { return e.StatusCode == 202 || e.Code == "job_not_ready" }
	//
	// Do not test for 404 alone: a wrong job id would be waited for until MaxWait.
	NotReady func(*Error) bool
	// Interval is the wait before the next request, plus up to a fifth at random. A
	// longer Retry-After is obeyed. Zero is 30 seconds; below zero is refused.
	Interval time.Duration
	// MaxWait is the longest total wait: no request begins after it, except a retry.
	// Zero is an hour; below zero asks once.
	MaxWait time.Duration
}

const (
	defaultInterval = 30 * time.Second
	defaultMaxWait  = time.Hour
)

// DownloadWhenReady is [Client.Download] for a job that may not be ready. It repeats
// the request, as o says, until the job is ready. It fails with [ErrNotReady], or with
// the error of an outage, as soon as MaxWait or the deadline of ctx leaves no time for
// another request, and with [ErrInvalidArgument] if NotReady is nil or Interval is
// below zero. For a file, use [FileOptions.Wait].
func (c *Client) DownloadWhenReady(ctx context.Context, jobID string, o WaitOptions, opts ...Option) (*Download, error) {
	if o.NotReady == nil {
		return nil, &Error{Operation: operation, Err: transport.Invalid("WaitOptions.NotReady is nil")}
	}
	return c.download(ctx, jobID, &o, opts)
}

func (o *WaitOptions) check() error {
	if o.NotReady == nil && (o.Interval != 0 || o.MaxWait != 0) {
		return transport.Invalid("WaitOptions.NotReady is nil, and would never wait")
	}
	if o.Interval < 0 {
		return transport.Invalid("WaitOptions.Interval is negative")
	}
	return nil
}

// wait calls open until the job is ready.
func (o *WaitOptions) wait(ctx context.Context, q *request, open func() (*resumer, error)) (*resumer, error) {
	began := time.Now()
	until := began.Add(cmp.Or(max(o.MaxWait, -1), defaultMaxWait) - q.waited) // a download that starts over does not wait anew
	defer func() { q.waited += time.Since(began) }()
	deadline, bounded := ctx.Deadline()
	for waited := false; ; {
		r, err := open()
		failed, ok := err.(*Error)
		notReady := ok && o.NotReady != nil && failed.StatusCode != 0 && o.NotReady(failed)
		if ctx.Err() != nil || !notReady && !(waited && ok && failed.Retryable()) {
			return r, err
		}
		waited = true
		pause := min(max(cmp.Or(o.Interval, defaultInterval), failed.RetryAfter), math.MaxInt64/2) // for the sum
		pause += q.client.core.Jitter(ctx, pause/5+1)
		last := *failed
		outOfTime := bounded && time.Until(deadline) <= pause
		waitedEnough := time.Until(until) < pause
		switch {
		case !notReady && (outOfTime || waitedEnough):
			return nil, err
		case outOfTime:
			last.Err = transport.NewError("the job is not ready, and the deadline leaves no time to ask again", ErrNotReady, context.DeadlineExceeded, failed)
		case waitedEnough:
			last.Err = transport.NewError("the job was not ready in time", ErrNotReady, failed)
		case transport.Sleep(ctx, pause) != nil:
			ended := transport.Ended(ctx)
			last.Err = transport.NewError(ended.Error(), ended, failed)
		default:
			continue
		}
		return nil, &last
	}
}
