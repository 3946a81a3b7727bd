package auth

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A call that need not wait for the source asks it, however long the last call took. This test has
// the real clock, which moves while a call finds the source idle.
func TestIdleSourceIsAsked(t *testing.T) {
	source := oneAtATime(Static("token"))
	source.took = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if token, _, err := Ask(ctx, source, ""); token != "token" || err != nil {
		t.Errorf("%q, %v", token, err)
	}
}

// A source that is slower than the calls that ask it still gives as many tokens as it can, and a
// call that took long makes none fail that comes when the source is idle.
func TestSourceThatIsSlowerThanItsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took, deadline, calls = 500 * time.Millisecond, 2200 * time.Millisecond, 600
		var hangs atomic.Bool
		source, err := NewSource(Func(func(context.Context) (string, error) {
			if hangs.Load() {
				time.Sleep(time.Minute)
			}
			time.Sleep(took)
			return "token", nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		var tokens atomic.Int32
		ask := func() {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			if _, failed, _ := Ask(ctx, source, ""); failed == nil {
				tokens.Add(1)
			}
		}
		var asking sync.WaitGroup
		for range calls { // ten a second
			asking.Go(ask)
			time.Sleep(100 * time.Millisecond)
		}
		asking.Wait()
		if n := tokens.Load(); n < 110 { // 120 are possible
			t.Errorf("%d calls of %d have a token", n, calls)
		}
		hangs.Store(true)
		ask()
		hangs.Store(false)
		time.Sleep(2 * time.Minute)
		before := tokens.Load()
		if ask(); tokens.Load() != before+1 {
			t.Error("no token after a call that hung")
		}
	})
}
