package main

import (
	"context"
	"sync"
	"time"
)

const (
	breakAfter = 5 // failures in a row
	pauseFirst = time.Second
	pauseMost  = time.Minute
)

// A breaker keeps a worker from turning a whole backlog into refunds whose outcome
// is unknown, when the service answers 503 for a while. After some failures in a
// row it pauses, and then lets through one refund per pause, until one succeeds.
//
// It also holds everything back while an outcome cannot be written down.
type breaker struct {
	say        func(format string, args ...any)
	mu         sync.Mutex
	failures   int
	until      time.Time
	unrecorded int // outcomes
}

// wait returns when a refund may be sent, or with the error of ctx. Whoever then
// sends none has to give the turn back.
func (b *breaker) wait(ctx context.Context) (turn bool, err error) {
	for {
		d, turn := b.enter(time.Now())
		if d <= 0 {
			return turn, ctx.Err()
		}
		// Looking again every second, in case that a turn is given back.
		timer := time.NewTimer(min(d, time.Second))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		case <-timer.C:
		}
	}
}

// enter returns how long to wait. Whoever enters after a pause begins the next,
// and has the turn.
func (b *breaker) enter(now time.Time) (wait time.Duration, turn bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.until.Sub(now); d > 0 {
		return d, false
	}
	if b.unrecorded > 0 {
		return time.Second, false
	}
	if b.failures >= breakAfter {
		b.until = now.Add(b.pause())
		return 0, true
	}
	return 0, false
}

// giveBack ends the pause that a turn began.
func (b *breaker) giveBack(turn bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if turn {
		b.until = time.Time{}
	}
}

// hold holds everything back until release.
func (b *breaker) hold(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unrecorded++; b.unrecorded == 1 {
		b.say("pausing: an outcome cannot be written down, and is tried again: %v", err)
	}
}

func (b *breaker) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unrecorded--; b.unrecorded == 0 {
		b.say("going on: the outcomes are written down")
	}
}

func (b *breaker) pause() time.Duration {
	return min(pauseMost, pauseFirst<<min(b.failures-breakAfter, 10))
}

// report takes what became of a refund that was let through.
func (b *breaker) report(o outcome, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !o.failed {
		if b.failures >= breakAfter {
			b.say("going on")
		}
		b.failures, b.until = 0, time.Time{}
		return
	}
	if b.failures++; b.failures == breakAfter {
		b.say("pausing: %d failures in a row, the last: %s; one refund goes out per pause, until one succeeds", breakAfter, o.reason)
	}
	if b.failures >= breakAfter {
		b.pauseUntil(now.Add(b.pause()))
	}
	b.pauseUntil(now.Add(min(o.wait, pauseMost)))
}

func (b *breaker) pauseUntil(t time.Time) {
	if t.After(b.until) {
		b.until = t
	}
}
