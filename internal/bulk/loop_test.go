package bulk

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
)

// An input ends as its sequence does, and its panic is for the loop.
func TestInput(t *testing.T) {
	for name, test := range map[string]struct {
		end   func()
		panic any
	}{
		"returns": {func() {}, nil}, "panics": {func() { panic("ouch") }, "ouch"}, "ends its goroutine": {runtime.Goexit, ErrPanicked},
	} {
		in := Ahead(t.Context(), func(yield func(int) bool) {
			for i := range 3 {
				if !yield(i) {
					t.Errorf("%s: item %d was not taken", name, i)
				}
			}
			test.end()
		}, func(i int) int { return 10 * i })
		for want := range 3 {
			if got := <-in.Items; got != 10*want {
				t.Errorf("%s: item %d is %d", name, want, got)
			}
		}
		if <-in.Ended; in.Panic() != test.panic {
			t.Errorf("%s: %v", name, in.Panic())
		}
	}
}

// No item is taken after the loop has ended: the sequence sees that its yield returns false.
func TestInputEndsWithItsLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		yielded, taken := 0, true
		in := Ahead(ctx, func(yield func(int) bool) {
			for taken {
				yielded++
				taken = yield(yielded)
			}
		}, func(i int) int { return i })
		<-in.Items
		synctest.Wait() // it holds the second
		cancel()
		if <-in.Ended; yielded != 2 || in.Panic() != nil {
			t.Errorf("%d yielded, %v", yielded, in.Panic())
		}
	})
}
