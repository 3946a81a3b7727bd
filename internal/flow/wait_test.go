package flow_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/flow"
)

// A call that waits for a place sleeps until there is one.
func TestWaitingCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, only := limited(t)
		go w.Acquire(context.Background(), flow.Request{})
		synctest.Wait()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		time.Sleep(time.Minute)
		runtime.ReadMemStats(&after)
		if s := w.State(); s.Waiting != 1 || s.InFlight != 1 {
			t.Errorf("in flight %d, waiting %d, want one of each", s.InFlight, s.Waiting)
		}
		if n := after.Mallocs - before.Mallocs; n > 10_000 {
			t.Errorf("the call that waits has allocated %d times in a minute", n)
		}
		only(flow.Result{Says: flow.Success, Took: time.Second})
	})
}
