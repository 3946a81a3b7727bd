package bulk

import (
	"cmp"
	"context"
	"iter"

	"github.com/carddata/carddata-go/internal/fault"
)

// ErrPanicked stands for a function of the caller that ended its goroutine, as t.FailNow does, or
// for the result that its panic has cost.
var ErrPanicked = fault.NewError("a function of the caller's panicked, or ended its goroutine")

// Panicked returns the value of a panic for the loop's goroutine, where the caller can recover. It is
// called with recover() in a deferred function, if the caller's code did not return.
func Panicked(recovered any) any { return cmp.Or(recovered, any(ErrPanicked)) }

// An Input runs a sequence of the caller on a goroutine of its own.
type Input[T any] struct {
	// Items hands items over. It is not buffered, so no item is taken after the loop has ended.
	Items <-chan T
	// Ended is closed when the sequence has returned.
	Ended    <-chan struct{}
	panicked any
}

// Ahead begins an input. take makes an item of what the sequence yields. If an item could not be
// handed over before ctx ended, it was not taken, and the yield of the sequence returns false.
func Ahead[In, T any](ctx context.Context, from iter.Seq[In], take func(In) T) *Input[T] {
	items, ended := make(chan T), make(chan struct{})
	in := &Input[T]{Items: items, Ended: ended}
	go func() {
		defer close(ended)
		returned := false
		defer func() {
			if recovered := recover(); !returned {
				in.panicked = Panicked(recovered)
			}
		}()
		for i := range from {
			select {
			case items <- take(i):
				continue
			case <-ctx.Done():
			}
			break
		}
		returned = true
	}()
	return in
}

// Panic returns the value of the sequence's panic, or nil. Call it once Ended is closed.
func (in *Input[T]) Panic() any { return in.panicked }
