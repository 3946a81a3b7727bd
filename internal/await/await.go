// Package await waits, but never beyond the end of a context.
package await

import (
	"context"
	"math/rand/v2"
	"time"
)

// Sleep waits for a time, or until over is closed, and fails with the context. A nil channel is not waited
// for.
func Sleep(ctx context.Context, d time.Duration, over <-chan struct{}) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
	case <-over:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// A Jitter draws the random part of a wait, in [0, below). below must be positive.
type Jitter func(ctx context.Context, below time.Duration) time.Duration

// Evenly is the Jitter of all clients but those of a simulation.
func Evenly(_ context.Context, below time.Duration) time.Duration { return rand.N(below) }
