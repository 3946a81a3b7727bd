package flow

import (
	"container/list"
	"context"
	"time"
)

// A line is the calls that wait for a place, in their order.
type line struct{ list.List }

// A waiter is woken by a value in its channel.
type waiter chan struct{}

func (l *line) enter(first bool) *list.Element {
	me := make(waiter, 1)
	if first {
		return l.PushFront(me)
	}
	return l.PushBack(me)
}

// leave makes room for the next one.
func (l *line) leave(me *list.Element) {
	l.Remove(me)
	l.wake()
}

func (l *line) isFirst(me *list.Element) bool { return l.Front() == me }

// wake wakes the first one, because its place may be free.
func (l *line) wake() { wake(l.Front()) }

// wakeAll wakes all, because none of them may leave for now.
func (l *line) wakeAll() {
	for e := l.Front(); e != nil; e = e.Next() {
		wake(e)
	}
}

func wake(e *list.Element) {
	if e == nil {
		return
	}
	select {
	case e.Value.(waiter) <- struct{}{}:
	default: // it has been woken
	}
}

// leastWait keeps a wait from ending before its time by the clock's resolution.
const leastWait = 20 * time.Microsecond

// wait waits until the line is woken, or until a time if there is one. It fails with the context.
func (l *line) wait(ctx context.Context, me *list.Element, until time.Time) error {
	var due <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(max(time.Until(until), leastWait))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-me.Value.(waiter):
	case <-due:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
