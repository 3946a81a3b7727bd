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
		w := flow.New(nil)
		acquire := func() func(flow.Result) {
			release, err := w.Acquire(context.Background(), flow.Request{})
			if err != nil {
				t.Fatal(err)
			}
			return release
		}
		ends := func(release func(flow.Result), says flow.Says) {
			time.Sleep(time.Second)
			release(flow.Result{Says: says, Took: time.Second})
		}
		ends(acquire(), flow.Success)
		for range 3 {
			ends(acquire(), flow.Overload) // from now on, one at a time
		}
		only := acquire()
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
