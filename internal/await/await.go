// Package await waits, but never beyond the end of a context.
//
// Code of the caller may hang: a limiter, a function before sending, a wrapper, a transport, a
// proxy function, a check of certificates, or a body that a wrapper substitutes. A call must
// still end by its deadline. So each of these runs on its own goroutine, which is abandoned if
// it does not return. A logger and a check of a response run on the call's goroutine, because
// the call needs them to finish.
package await

import (
	"context"
	"math/rand/v2"
	"runtime"
	"time"
)

// ReturnGrace is the time for code to return after its context ended. Its result still says
// how the round trip ended.
const ReturnGrace = 100 * time.Millisecond

// Call calls f on its own goroutine. It abandons f if f does not return within ReturnGrace
// after the end of ctx.
func Call[T any](ctx context.Context, f func() (T, error)) (value T, left bool, err error) {
	future := NewFuture(f, func(T, error) {})
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(ReturnGrace, cancel) })
	defer stop()
	value, err = future.Wait(late)
	if left = late.Err() != nil && !future.isDone(); left {
		return value, true, context.Cause(ctx)
	}
	return value, false, err
}

// A Future is the result of a function of the caller that runs on its own goroutine. A caller
// can stop waiting for it.
type Future[T any] struct {
	done     chan struct{} // closed when the result is there
	value    T
	err      error
	panicked any
	returned bool // f did not panic or end its goroutine, as t.FailNow does
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
		r.returned = true
	}()
	return r
}

func (r *Future[T]) isDone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// Wait ends like f: if f panicked or ended its goroutine, so does Wait, and the caller can
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
	if !r.returned {
		runtime.Goexit()
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
