package bulk

import (
	"context"
	"iter"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// numbers yields the numbers below n, and notes how many were taken.
func numbers(n int, taken *int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
			*taken++
		}
	}
}

// newLoop returns a loop that adds ten times what the input yields.
func newLoop(added *[]int) *Loop[int, int] {
	return NewLoop(func(i int) int { return 10 * i }, func(i int) { *added = append(*added, i) }, 8)
}

// all waits until the input has ended.
func all(l *Loop[int, int]) func() bool {
	return func() bool {
		for l.IsAhead() && !l.Ended {
			l.Wait(true, nil, nil, nil)
		}
		return true
	}
}

// The input is taken in its order, ahead of the loop or on its goroutine.
func TestInput(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		var added []int
		taken := 0
		l := newLoop(&added)
		l.Run(t.Context(), numbers(3, &taken), ahead, all(l))
		if !slices.Equal(added, []int{0, 10, 20}) || taken != 3 || !l.Ended {
			t.Errorf("ahead %v: %v of %d, ended: %v", ahead, added, taken, l.Ended)
		}
	}
}

// Where the loop stops, the input does, too, and what it could not hand over was not taken.
func TestInputEndsWithItsLoop(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var added []int
			taken := 0
			ctx, cancel := context.WithCancel(t.Context())
			l := newLoop(&added)
			l.Run(ctx, numbers(5, &taken), ahead, func() bool {
				if ahead {
					l.Wait(true, nil, nil, nil)
					l.Wait(true, nil, nil, nil)
				}
				return len(added) < 2
			})
			cancel()
			l.AwaitInput(nil)
			if want := len(added); want != 2 || ahead && taken != 2 || !ahead && taken != 1 || l.Ended != ahead {
				t.Errorf("ahead %v: %v, %d taken, ended: %v", ahead, added, taken, l.Ended)
			}
		})
	}
}

// TakeAhead does not wait for an input that does.
func TestTakeAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var added []int
		l := newLoop(&added)
		l.Run(t.Context(), func(yield func(int) bool) {
			yield(1)
			time.Sleep(time.Hour)
		}, true, func() bool { return false })
		for _, want := range []bool{true, false} {
			if synctest.Wait(); l.TakeAhead() != want || len(added) != 1 {
				t.Errorf("%v, want an item: %v", added, want)
			}
		}
		time.Sleep(2 * time.Hour)
		if !l.TakeAhead() || !l.Ended {
			t.Error("the end was not noticed")
		}
	})
}

// rethrown is the panic that a loop repeats.
func rethrown(l *Loop[int, int]) (panicked any) {
	defer func() { panicked = recover() }()
	l.Rethrow()
	return nil
}

// A panic of an input ahead, or of a task, waits for the loop's goroutine, and comes once.
func TestPanics(t *testing.T) {
	for name, test := range map[string]struct {
		end  func()
		want any
	}{
		"returns": {func() {}, nil}, "panics": {func() { panic("ouch") }, "ouch"}, "ends its goroutine": {runtime.Goexit, ErrPanicked},
	} {
		var added []int
		l := newLoop(&added)
		l.Run(t.Context(), func(func(int) bool) { test.end() }, true, all(l))
		if got := rethrown(l); got != test.want || rethrown(l) != nil {
			t.Errorf("an input that %s: %v", name, got)
		}
		ended, lost := 0, 0
		l.Start(func() func() {
			test.end()
			return func() { ended++ }
		}, func() { lost++ })
		l.Receive()
		if got := rethrown(l); got != test.want || ended+lost != 1 || (lost > 0) != (test.want != nil) || l.Running != 0 {
			t.Errorf("a task that %s: %v, %d ended, %d lost, %d running", name, got, ended, lost, l.Running)
		}
	}
}

// An event of a task comes before its end, on the loop's goroutine.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var added, seen []int
		l := newLoop(&added)
		for i := range 3 {
			l.Start(func() func() {
				time.Sleep(time.Duration(i) * time.Second)
				l.Post(func() { seen = append(seen, i) })
				return func() { seen = append(seen, -i) }
			}, nil)
		}
		for l.Running > 0 {
			l.Wait(false, nil, nil, nil)
		}
		if l.Tasks.Wait(); !slices.Equal(seen, []int{0, 0, 1, -1, 2, -2}) || l.HasEvents() {
			t.Errorf("%v", seen)
		}
	})
}

// A wait ends with a time, a change or a context.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var added []int
		l := newLoop(&added)
		closed := make(chan struct{})
		close(closed)
		began := time.Now()
		l.Wait(false, At(began.Add(time.Minute)), nil, nil)
		l.Wait(false, nil, closed, nil)
		l.Wait(false, nil, nil, closed)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("waited for %v", took)
		}
	})
}
