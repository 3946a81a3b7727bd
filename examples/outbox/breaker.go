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
type breaker struct {
	mu       sync.Mutex
	failures int
	until    time.Time
}

// wait returns when a refund may be sent, or with the error of ctx.
func (b *breaker) wait(ctx context.Context) error {
	for {
		d := b.enter(time.Now())
		if d <= 0 {
			return ctx.Err()
		}
		timer := time.NewTimer(d)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// enter returns how long to wait. Whoever enters after a pause begins the next.
func (b *breaker) enter(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.until.Sub(now); d > 0 {
		return d
	}
	if b.failures >= breakAfter {
		b.until = now.Add(b.pause())
	}
	return 0
}

func (b *breaker) pause() time.Duration {
	return min(pauseMost, pauseFirst<<min(b.failures-breakAfter, 10))
}

// report takes what became of a refund that was let through.
func (b *breaker) report(o outcome, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !o.failed {
		b.failures, b.until = 0, time.Time{}
		return
	}
	b.failures++
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
