package bulk

import (
	"cmp"
	"context"
	"iter"
	"sync"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
)

// ErrPanicked stands for a function of the caller that ended its goroutine, as t.FailNow does, or
// for the result that its panic has cost.
var ErrPanicked = fault.NewError("a function of the caller's panicked, or ended its goroutine")

// Panicked returns the value of a panic for the goroutine of a call, where the caller can recover. It
// is called with recover() in a deferred function, if the caller's code did not return.
func Panicked(recovered any) any { return cmp.Or(recovered, any(ErrPanicked)) }

// A Loop is what a bulk call does beside its own work. It takes the items of the caller's input, and
// runs tasks on goroutines of their own and what they leave to do on the loop's. A panic of the
// caller's code on another goroutine waits for Rethrow, on the loop's, where the caller can recover.
type Loop[In, T any] struct {
	// Ended reports that the input has ended.
	Ended bool
	// Running is the number of tasks whose end was not received.
	Running int
	// Tasks are all goroutines of the loop, but for the input's.
	Tasks sync.WaitGroup

	take   func(In) T
	add    func(T)
	events chan event

	items      chan T        // from the input, if it runs ahead; nil: it does not
	inputEnded chan struct{} // closed when an input ahead has returned
	ofInput    any           // its panic
	panicked   any           // the first panic that waits for Rethrow
}

// An event runs on the loop's goroutine.
type event struct {
	run  func()
	last bool // of its task
}

// NewLoop returns a loop. take makes an item of what the input yields, and add gets it on the loop's
// goroutine. No more events are posted than so many at once, the ends of tasks included.
func NewLoop[In, T any](take func(In) T, add func(T), events int) *Loop[In, T] {
	return &Loop[In, T]{take: take, add: add, events: make(chan event, events)}
}

// Run takes the input, on the loop's goroutine or ahead of it. advance is called after each item, does
// all that needs no further one, and reports whether to go on. With ahead it is called once, and takes
// the items by Wait or TakeAhead.
func (l *Loop[In, T]) Run(ctx context.Context, from iter.Seq[In], ahead bool, advance func() bool) {
	if ahead {
		l.items, l.inputEnded = make(chan T), make(chan struct{})
		go l.runAhead(ctx, from)
	} else {
		for i := range from {
			if l.add(l.take(i)); !advance() {
				return
			}
		}
		l.Ended = true
	}
	advance()
}

// runAhead hands items over. The channel is not buffered, so an item that could not be handed over before
// ctx ended was not taken, and the yield of the input returns false.
func (l *Loop[In, T]) runAhead(ctx context.Context, from iter.Seq[In]) {
	defer close(l.inputEnded)
	returned := false
	defer func() {
		if panicked := recover(); !returned {
			l.ofInput = Panicked(panicked)
		}
	}()
	for i := range from {
		select {
		case l.items <- l.take(i):
			continue
		case <-ctx.Done():
		}
		break
	}
	returned = true
}

// IsAhead reports whether the input runs ahead of the loop.
func (l *Loop[In, T]) IsAhead() bool { return l.items != nil }

// TakeAhead takes the item that an input ahead has ready, or notices its end. It does not wait.
func (l *Loop[In, T]) TakeAhead() bool {
	select {
	case i := <-l.items:
		l.add(i)
	case <-l.inputEnded:
		l.end()
	default:
		return false
	}
	return true
}

func (l *Loop[In, T]) end() {
	l.Ended = true
	l.panicked = cmp.Or(l.panicked, l.ofInput)
}

// Start runs a task, and then the end that it returns on the loop's goroutine. If the task panics or
// ends its goroutine, lost runs there instead, unless it is nil.
func (l *Loop[In, T]) Start(task func() (end func()), lost func()) {
	l.Running++
	l.Tasks.Go(func() {
		var end func()
		defer func() {
			if panicked := recover(); end == nil {
				end = func() {
					l.panicked = cmp.Or(l.panicked, Panicked(panicked))
					if lost != nil {
						lost()
					}
				}
			}
			l.events <- event{end, true}
		}()
		end = task()
	})
}

// Post runs a function on the loop's goroutine, before the end of the task that calls Post.
func (l *Loop[In, T]) Post(run func()) { l.events <- event{run: run} }

// HasEvents reports whether Receive would not wait.
func (l *Loop[In, T]) HasEvents() bool { return len(l.events) > 0 }

// Receive runs the next event.
func (l *Loop[In, T]) Receive() { l.receive(<-l.events) }

func (l *Loop[In, T]) receive(e event) {
	if e.last {
		l.Running--
	}
	e.run()
}

// Wait waits for an event, for a time, a change or the end of a context, and if the loop takes an item
// from an input ahead, for that. A nil channel is not waited for.
func (l *Loop[In, T]) Wait(takes bool, due <-chan time.Time, changed, done <-chan struct{}) {
	var items <-chan T
	var ended <-chan struct{}
	if takes {
		items, ended = l.items, l.inputEnded
	}
	select {
	case e := <-l.events:
		l.receive(e)
	case i := <-items:
		l.add(i)
	case <-ended:
		l.end()
	case <-due:
	case <-changed:
	case <-done:
	}
}

// AwaitInput waits until an input ahead has ended.
func (l *Loop[In, T]) AwaitInput(done <-chan struct{}) {
	if !l.IsAhead() || l.Ended {
		return
	}
	select {
	case <-l.inputEnded:
		l.end()
	case <-done:
	}
}

// Rethrow repeats the first panic of the caller's code, once.
func (l *Loop[In, T]) Rethrow() {
	if panicked := l.panicked; panicked != nil {
		l.panicked = nil
		panic(panicked)
	}
}
