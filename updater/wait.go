package updater

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// ErrNotReady: the job is not ready. The service responded with 202, 204, or what
// [WithNotReady] names. Try again after Error.RetryAfter, if it is set, or let [WithWait] do
// so.
var ErrNotReady = transport.ErrNotReady

const defaultInterval = 30 * time.Second

// waitFor calls ask until the job is ready, as WithWait says.
func waitFor[T any](ctx context.Context, q *request, ask func() (T, error)) (T, error) {
	began, before := time.Now(), q.waited
	for waited := false; ; waited = true {
		result, err := ask()
		if waited {
			q.waited = before + time.Since(began)
		}
		failed, ok := err.(*Error)
		if !ok || ctx.Err() != nil || !q.waits() {
			return result, err
		}
		// Wait out an outage only after the job is known to exist.
		if !errors.Is(failed, ErrNotReady) && !(waited && failed.Retryable()) {
			return result, err
		}
		if err := q.pause(ctx, failed, before+time.Since(began)); err != nil {
			return result, err
		}
	}
}

func (q *request) waits() bool { return q.settings != nil && q.settings.WaitLimit > 0 }

// pause waits until the job may be asked for again, or returns the error that ends the call.
func (q *request) pause(ctx context.Context, failed *Error, waited time.Duration) error {
	deadline, bounded := ctx.Deadline()
	pause := min(max(cmp.Or(q.settings.WaitInterval, defaultInterval), failed.RetryAfter), math.MaxInt64/2) // for the sum
	pause += q.client.core.Jitter(ctx, pause/5+1)
	last := *failed
	outOfTime := bounded && time.Until(deadline) <= pause
	waitedEnough := q.settings.WaitLimit-waited < pause
	switch {
	case !errors.Is(failed, ErrNotReady) && (outOfTime || waitedEnough):
		return failed
	case outOfTime:
		last.Err = transport.NewError("the job is not ready, and the deadline leaves no time to ask again", ErrNotReady, context.DeadlineExceeded, failed)
	case waitedEnough:
		last.Err = transport.NewError("the job was not ready in time", ErrNotReady, failed)
	case transport.Sleep(ctx, pause) != nil:
		ended := transport.Ended(ctx)
		last.Err = transport.NewError(ended.Error(), ended, failed)
	default:
		return nil
	}
	return &last
}
