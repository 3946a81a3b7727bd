package updater

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/carddata/carddata-go/internal/await"
	"github.com/carddata/carddata-go/internal/fault"
)

// ErrNotReady: the job is not ready. The service responded with 202, 204, or what [WithNotReady]
// names. It is Retryable: try again after Error.RetryAfter, if it is set, or let [WithWait] do so.
var ErrNotReady = fault.ErrNotReady

const defaultInterval = 30 * time.Second

// await opens the content, and asks again until the job is ready, as WithWait says.
func (q *request) await(ctx context.Context, open func() (*resumer, error)) (*resumer, error) {
	for waited := false; ; waited = true {
		r, err := open()
		failed, ok := err.(*Error)
		if !ok || ctx.Err() != nil || q.settings == nil || q.settings.WaitLimit == 0 {
			return r, err
		}
		// Wait out an outage only after the job is known to exist.
		if !errors.Is(failed, ErrNotReady) && !(waited && failed.Retryable()) {
			return nil, failed
		}
		pause := min(max(cmp.Or(q.settings.WaitInterval, defaultInterval), failed.RetryAfter), math.MaxInt64/2) // for the sum
		pause += q.client.core.Jitter(ctx, pause/5+1)
		end := q.began.Add(q.settings.WaitLimit)
		if deadline, ok := ctx.Deadline(); ok && deadline.Before(end) {
			end = deadline
		}
		if time.Until(end) <= pause {
			return nil, failed
		}
		if await.Sleep(ctx, pause) != nil {
			ended, last := fault.Ended(ctx), *failed
			last.Err = fault.NewError(ended.Error(), ended, failed)
			return nil, &last
		}
	}
}
