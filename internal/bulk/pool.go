package bulk

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/carddata/carddata-go/internal/await"
	"github.com/carddata/carddata-go/internal/fault"
)

// A Pool runs the tasks of a bulk call on goroutines of their own, and what they leave to do on the goroutine
// of its loop. So many tasks may work at once. A task that waits for something else gives its slot to others,
// and gets one back in turn.
//
// A panic of the caller's code on another goroutine waits for Rethrow, on the loop's, where the caller can
// recover.
type Pool struct {
	// Running is the number of tasks whose end was not received.
	Running int

	most     int
	events   chan event
	freed    chan struct{} // has a value if a slot may have become free
	tasks    sync.WaitGroup
	panicked any // the first panic that waits for Rethrow

	mu      sync.Mutex
	busy    int             // slots
	waiting []chan struct{} // tasks that wait for a slot, in order
}

// ErrPanicked stands for a function of the caller that ended its goroutine, as t.FailNow does, or
// for the result that its panic has cost.
var ErrPanicked = fault.NewError("a function of the caller's panicked, or ended its goroutine")

// Panicked returns the value of a panic for the goroutine of a call, where the caller can recover. It
// is called with recover() in a deferred function, if the caller's code did not return.
func Panicked(recovered any) any { return cmp.Or(recovered, any(ErrPanicked)) }

// An event runs on the loop's goroutine.
type event struct {
	run  func()
	last bool // of its task
}

// NewPool returns a pool in which so many tasks may work at once.
func NewPool(most int) *Pool {
	return &Pool{most: most, events: make(chan event), freed: make(chan struct{}, 1)}
}

// HasRoom reports whether a task may start.
func (p *Pool) HasRoom() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy < p.most
}

// Start runs a task as soon as it has a slot, and then the end that it returns on the loop's goroutine. If the
// task panics or ends its goroutine, lost runs there instead. The slot is free when the end runs.
func (p *Pool) Start(task func(*Slot) (end func()), lost func()) { p.start(task, lost, false) }

// StartFirst starts a task before all that wait for a slot.
func (p *Pool) StartFirst(task func(*Slot) (end func()), lost func()) { p.start(task, lost, true) }

func (p *Pool) start(task func(*Slot) (end func()), lost func(), first bool) {
	p.Running++
	slot := &Slot{pool: p}
	turn := slot.ask(first)
	p.tasks.Go(func() {
		slot.take(turn)
		var end func()
		defer func() {
			if panicked := recover(); end == nil {
				end = func() {
					if p.panicked == nil {
						p.panicked = Panicked(panicked)
					}
					lost()
				}
			}
			p.events <- event{run: func() {
				if slot.held {
					p.free()
				}
				end()
			}, last: true}
		}()
		end = task(slot)
	})
}

// Go runs what needs no slot, and has no end to receive. Close waits for it, too.
func (p *Pool) Go(run func()) { p.tasks.Go(run) }

// Post runs a function on the loop's goroutine, before the end of the task that calls Post.
func (p *Pool) Post(run func()) { p.events <- event{run: run} }

// Receive runs all events that are there.
func (p *Pool) Receive() {
	for {
		select {
		case e := <-p.events:
			p.receive(e)
		default:
			return
		}
	}
}

// Rethrow repeats the first panic of the caller's code, once.
func (p *Pool) Rethrow() {
	if panicked := p.panicked; panicked != nil {
		p.panicked = nil
		panic(panicked)
	}
}

func (p *Pool) receive(e event) {
	if e.last {
		p.Running--
	}
	e.run()
}

// Wait waits for an event, a free slot, a time, or the end of a context. A nil channel is not waited for.
func (p *Pool) Wait(due <-chan time.Time, done <-chan struct{}) {
	select {
	case e := <-p.events:
		p.receive(e)
	case <-p.freed:
	case <-due:
	case <-done:
	}
}

// Close waits until all tasks have ended.
func (p *Pool) Close() {
	for p.Running > 0 {
		p.receive(<-p.events)
	}
	p.tasks.Wait()
}

// free gives a slot to a task that waits for one, or to the loop.
func (p *Pool) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) > 0 {
		close(p.waiting[0])
		p.waiting = p.waiting[1:]
		return
	}
	p.busy--
	select {
	case p.freed <- struct{}{}:
	default:
	}
}

// A Slot is the right of a task to work.
type Slot struct {
	pool *Pool
	held bool
}

// Wait waits for a time, or until over is closed, and fails with the context. Others have the slot
// meanwhile.
func (s *Slot) Wait(ctx context.Context, d time.Duration, over <-chan struct{}) error {
	s.held = false
	s.pool.free()
	if err := await.Sleep(ctx, d, over); err != nil {
		return err
	}
	s.take(s.ask(false))
	return ctx.Err()
}

// ask asks for a slot. The turn is nil if there is one.
func (s *Slot) ask(first bool) (turn chan struct{}) {
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy < p.most {
		p.busy++
		return nil
	}
	turn = make(chan struct{})
	if first {
		p.waiting = slices.Insert(p.waiting, 0, turn)
	} else {
		p.waiting = append(p.waiting, turn)
	}
	return turn
}

// take waits for the turn, which comes while others work.
func (s *Slot) take(turn chan struct{}) {
	if turn != nil {
		<-turn
	}
	s.held = true
}

// At returns a channel that receives at a time; nil if it is zero.
func At(t time.Time) <-chan time.Time {
	if t.IsZero() {
		return nil
	}
	return time.After(time.Until(t))
}
