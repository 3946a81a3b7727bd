package auth

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
)

// A source of the caller gets one call at a time. A call that waits for its turn ends with its
// context, and a source that panics gives its turn back.
func TestSourceIsAskedOneCallAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tokens, late atomic.Int32
		busy, panics := false, false
		source, err := NewSource(Func(func(ctx context.Context) (string, error) {
			if busy {
				t.Error("two calls at once")
			}
			busy = true
			defer func() { busy = false }()
			if panics {
				panic("broken")
			}
			select {
			case <-time.After(time.Second):
				return "token", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var calls sync.WaitGroup
		for range 10 {
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
				defer cancel()
				switch token, _, err := Ask(ctx, source, ""); {
				case token == "token" && err == nil:
					tokens.Add(1)
				case errors.Is(err, fault.ErrCredential) && errors.Is(err, context.DeadlineExceeded):
					late.Add(1)
				default:
					t.Error(token, err)
				}
			})
		}
		if calls.Wait(); tokens.Load() != 3 || late.Load() != 7 || time.Since(began) != 3500*time.Millisecond {
			t.Errorf("%d tokens, %d late, after %v", tokens.Load(), late.Load(), time.Since(began))
		}
		panics = true
		func() {
			defer func() { recover() }()
			Ask(t.Context(), source, "")
		}()
		panics = false
		if token, _, err := Ask(t.Context(), source, ""); token != "token" || err != nil {
			t.Errorf("after a panic: %q, %v", token, err)
		}
	})
}
