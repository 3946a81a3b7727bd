// Package await waits, but never beyond the end of a context.
package await

import (
	"context"
	"math/rand/v2"
	"time"
)

// A Future is the result of a function of the caller that runs on its own goroutine, because
// several calls need it, or because a call needs it only for a while.
type Future[T any] struct {
	done     chan struct{} // closed when the result is there
	value    T
	err      error
	panicked any
}

// NewFuture starts f. It calls ended on the same goroutine before any waiter gets the value.
func NewFuture[T any](f func() (T, error), ended func(T, error)) *Future[T] {
	r := &Future[T]{done: make(chan struct{})}
	go func() {
		defer func() {
			r.panicked = recover()
			ended(r.value, r.err)
			close(r.done)
		}()
		r.value, r.err = f()
	}()
	return r
}

// Wait waits for the result until ctx ends. If f panicked, so does Wait, and the caller can
// recover from the panic.
func (r *Future[T]) Wait(ctx context.Context) (value T, err error) {
	select {
	case <-r.done:
	case <-ctx.Done():
		return value, ctx.Err()
	}
	if r.panicked != nil {
		panic(r.panicked)
	}
	return r.value, r.err
}

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
