package updater

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// ErrNotReady: the job was not ready within [WaitOptions.MaxWait]. The error also
// holds the service's last answer.
var ErrNotReady = errors.New("not ready")

// WaitOptions say how to wait for a job. The states of a job, and what one that
// is not ready answers, are not documented: what stands here is your assumption,
// and the library has none of its own.
type WaitOptions struct {
	// NotReady tells whether an answer means that the job is not ready yet; any
	// other failure ends the waiting. A 202 or 204 is a failure too, with that
	// StatusCode. It is required, and could be:
	//
	//	func(e *updater.Error) bool { return e.StatusCode == 202 || e.Code == "job_not_ready" }
	//
	// If a status alone tells, such as 404, and a job that does not exist answers the
	// same, a wrong job id is waited for until MaxWait.
	NotReady func(*Error) bool
	// Interval is the wait before asking again, to which up to a fifth is added at
	// random. A longer Retry-After of the service is obeyed. Zero is 30 seconds.
	Interval time.Duration
	// MaxWait bounds the waiting as a whole: no further question is begun after
	// it. Zero is an hour.
	MaxWait time.Duration
}

const (
	defaultInterval = 30 * time.Second
	defaultMaxWait  = time.Hour
)

// DownloadWhenReady is [Client.Download] for a job that may not be ready: it asks
// again, as o says, until the job is. It ends with [ErrNotReady] as soon as
// MaxWait, or the deadline of ctx, leaves no time to ask again.
func (c *Client) DownloadWhenReady(ctx context.Context, jobID string, o WaitOptions, opts ...Option) (*Download, error) {
	s, err := c.source(ctx, jobID, opts)
	if err == nil && o.NotReady == nil {
		err = transport.Invalid("WaitOptions.NotReady is nil")
	}
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return nil, &Error{Operation: operation, Err: err}
	}
	return newDownload(ctx, func(ctx context.Context) (*content, error) {
		return o.wait(ctx, func() (*content, error) { return s.open(ctx, 0, -1, version{}) })
	})
}

func (o *WaitOptions) check() error {
	if o.NotReady == nil && (o.Interval != 0 || o.MaxWait != 0) {
		return transport.Invalid("WaitOptions.NotReady is nil, and would never wait")
	}
	if o.Interval < 0 || o.MaxWait < 0 {
		return transport.Invalid("a time of the WaitOptions is negative")
	}
	return nil
}

// wait calls open until the job is ready.
func (o *WaitOptions) wait(ctx context.Context, open func() (*content, error)) (*content, error) {
	interval, maxWait := o.Interval, o.MaxWait
	if interval == 0 {
		interval = defaultInterval
	}
	if maxWait == 0 {
		maxWait = defaultMaxWait
	}
	until := time.Now().Add(maxWait)
	for attempts := 0; ; {
		opened, err := open()
		if err == nil {
			opened.attempts += attempts
			return opened, nil
		}
		failed, ok := errors.AsType[*Error](err)
		if !ok || o.NotReady == nil || failed.StatusCode == 0 || ctx.Err() != nil || !o.NotReady(failed) {
			return nil, err
		}
		attempts += failed.Attempts
		pause := min(max(interval, failed.RetryAfter), math.MaxInt64/2) // for the sum
		pause += rand.N(pause/5 + 1)
		last := *failed
		last.Attempts = attempts
		if deadline, bounded := ctx.Deadline(); bounded && time.Until(deadline) <= pause {
			last.Err = transport.Reason("the job is not ready, and the deadline leaves no time to ask again", ErrNotReady, context.DeadlineExceeded, failed)
			return nil, &last
		}
		if time.Until(until) < pause {
			last.Err = transport.Reason("the job was not ready in time", ErrNotReady, failed)
			return nil, &last
		}
		if transport.Sleep(ctx, pause) != nil {
			ended := transport.Ended(ctx)
			last.Err = transport.Reason(ended.Error(), ended, failed)
			return nil, &last
		}
	}
}
