package transport

import (
	"sync"
	"time"
)

// A Clock says how long the last attempt of a call waited for its response. What this process does
// with a response that is there, such as decoding it, does not count: a busy process is no slow service.
type Clock struct {
	mu            sync.Mutex
	left, arrived time.Time
	waited        time.Time
}

// hasWaited notes that the call has its token and its turn, and runs BeforeSend next.
func (c *Clock) hasWaited(now time.Time) {
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.waited = now
	}
}

// Preparing is the time since the last attempt has waited for its token and its turn, which its
// BeforeSend takes.
func (c *Clock) Preparing() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.waited)
}

func (c *Clock) leaves(now time.Time) {
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.left, c.arrived = now, time.Time{}
	}
}

// arrives notes that the response is there. The first time counts.
func (c *Clock) arrives() {
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.arrived.IsZero() {
			c.arrived = time.Now()
		}
	}
}

// Left is when the last attempt was handed to the network; zero: none was.
func (c *Clock) Left() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

// Took is the time from then until the response was read, or until now.
func (c *Clock) Took() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.left.IsZero():
		return 0
	case c.arrived.IsZero():
		return time.Since(c.left)
	}
	return c.arrived.Sub(c.left)
}
