// Package await waits, but never beyond the end of a context.
package await

import (
	"context"
	"math/rand/v2"
	"time"
)

// Sleep waits, and returns early with an error if the context ends.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// A Jitter draws the random part of a wait, in [0, below); nil: evenly. below must be positive.
type Jitter func(ctx context.Context, below time.Duration) time.Duration

func (j Jitter) Draw(ctx context.Context, below time.Duration) time.Duration {
	if j != nil {
		return j(ctx, below)
	}
	return rand.N(below)
}
