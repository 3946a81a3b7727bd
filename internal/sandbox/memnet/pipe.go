package memnet

import (
	"bytes"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// capacity bounds the bytes in one direction, so that a slow reader slows the writer down
// instead of growing the heap.
const capacity = 64 << 10

// A pipe is one direction of a connection. An action of one end reaches the other after the
// latency. A close arrives half a latency after the bytes before it, and a reset a whole
// latency after them, so that they never arrive together.
type pipe struct {
	latency time.Duration

	mu             sync.Mutex
	changed        *sync.Cond
	buf            bytes.Buffer
	inTransit      int // bytes
	transit        []arrival
	reader, writer end
}

// An end is the state of one side of a pipe.
type end struct {
	closed   bool
	left     bool // the other end has closed, and this one knows
	reset    bool
	deadline time.Time
	timer    *time.Timer // wakes up who waits at the deadline; nil: none
}

// err is what ends an operation, even if it could go on.
func (e *end) err(op string) error {
	switch {
	case e.closed:
		return net.ErrClosed
	case e.reset:
		return os.NewSyscallError(op, syscall.ECONNRESET)
	case !e.deadline.IsZero() && !time.Now().Before(e.deadline):
		return os.ErrDeadlineExceeded
	}
	return nil
}

func (e *end) stopTimer() {
	if e.timer != nil {
		e.timer.Stop()
	}
}

// An arrival is an action on its way to the other side.
type arrival struct {
	due    time.Time
	happen func()
}

func newPipe(latency time.Duration) *pipe {
	p := &pipe{latency: latency}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// later runs an action on the other side, after d.
func (p *pipe) later(d time.Duration, happen func()) {
	if d == 0 {
		happen()
		p.changed.Broadcast()
		return
	}
	p.transit = append(p.transit, arrival{time.Now().Add(d), happen})
	time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		now := time.Now()
		p.transit = slices.DeleteFunc(p.transit, func(a arrival) bool {
			if a.due.After(now) {
				return false
			}
			a.happen()
			return true
		})
		p.changed.Broadcast()
	})
}

func (p *pipe) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if err := p.reader.err("read"); err != nil || len(b) == 0 {
			return 0, err
		}
		switch {
		case p.buf.Len() > 0:
			n, err := p.buf.Read(b)
			p.changed.Broadcast()
			return n, err
		case p.reader.left:
			return 0, io.EOF
		}
		p.changed.Wait()
	}
}

func (p *pipe) write(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if err := p.writer.err("write"); err != nil {
			return n, err
		}
		switch free := capacity - p.buf.Len() - p.inTransit; {
		case p.writer.left:
			return n, os.NewSyscallError("write", syscall.EPIPE)
		case n == len(b):
			return n, nil
		case free > 0:
			k := min(free, len(b)-n)
			p.send(b[n : n+k])
			n += k
		default:
			p.changed.Wait()
		}
	}
}

func (p *pipe) send(b []byte) {
	if p.latency > 0 {
		b = bytes.Clone(b)
	}
	p.inTransit += len(b)
	p.later(p.latency, func() {
		p.inTransit -= len(b)
		p.buf.Write(b)
	})
}

// close closes one end. The other learns of it later.
func (p *pipe) close(e, other *end) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.closed = true
	e.stopTimer()
	p.changed.Broadcast()
	if !e.reset {
		p.later(p.latency*3/2, func() { other.left = true })
	}
}

// cut breaks the pipe at once for one end, and later for the other.
func (p *pipe) cut(e, other *end) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.reset = true
	p.changed.Broadcast()
	p.later(2*p.latency, func() { other.reset = true })
}

func (p *pipe) setDeadline(e *end, t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.closed {
		return net.ErrClosed
	}
	e.stopTimer()
	e.deadline = t
	switch left := time.Until(t); {
	case t.IsZero():
	case left <= 0: // timers that fire at once crash the race detector in a bubble: golang/go#78156
		p.changed.Broadcast()
	default:
		e.timer = time.AfterFunc(left, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.changed.Broadcast()
		})
	}
	return nil
}
