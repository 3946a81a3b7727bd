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

	mu            sync.Mutex
	changed       *sync.Cond
	buf           bytes.Buffer
	inTransit     int // bytes
	transit       []arrival
	written       int64
	reader        end
	writer        end
	ended         bool // the writer closed, and the reader knows
	abandoned     bool // the reader closed, and the writer knows
	readDeadline  *deadline
	writeDeadline *deadline
}

// An end is the state of one side of a pipe.
type end struct{ closed, reset bool }

// An arrival is an action on its way to the other side.
type arrival struct {
	due    time.Time
	happen func()
}

// A deadline is never changed, only replaced. So a late timer marks no other deadline.
type deadline struct {
	timer   *time.Timer
	expired bool
}

func newPipe(latency time.Duration) *pipe {
	p := &pipe{latency: latency, readDeadline: &deadline{}, writeDeadline: &deadline{}}
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
		switch {
		case p.reader.closed:
			return 0, net.ErrClosed
		case p.reader.reset:
			return 0, os.NewSyscallError("read", syscall.ECONNRESET)
		case p.readDeadline.expired:
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		case p.buf.Len() > 0:
			n, err := p.buf.Read(b)
			p.changed.Broadcast()
			return n, err
		case p.ended:
			return 0, io.EOF
		}
		p.changed.Wait()
	}
}

func (p *pipe) write(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.writer.closed:
			return n, net.ErrClosed
		case p.writer.reset:
			return n, os.NewSyscallError("write", syscall.ECONNRESET)
		case p.writeDeadline.expired:
			return n, os.ErrDeadlineExceeded
		case p.abandoned:
			return n, os.NewSyscallError("write", syscall.EPIPE)
		case n == len(b):
			return n, nil
		}
		if free := capacity - p.buf.Len() - p.inTransit; free > 0 {
			k := min(free, len(b)-n)
			p.send(b[n : n+k])
			n += k
			continue
		}
		p.changed.Wait()
	}
}

func (p *pipe) send(b []byte) {
	p.written += int64(len(b))
	if p.latency > 0 {
		b = bytes.Clone(b)
	}
	p.inTransit += len(b)
	p.later(p.latency, func() {
		p.inTransit -= len(b)
		if !p.reader.closed && !p.reader.reset {
			p.buf.Write(b)
		}
	})
}

func (p *pipe) closeReader() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reader.closed = true
	p.buf = bytes.Buffer{}
	p.readDeadline.stop()
	p.changed.Broadcast()
	if !p.reader.reset {
		p.later(p.latency*3/2, func() { p.abandoned = true })
	}
}

func (p *pipe) closeWriter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writer.closed = true
	p.writeDeadline.stop()
	p.changed.Broadcast()
	if !p.writer.reset {
		p.later(p.latency*3/2, func() { p.ended = true })
	}
}

// cut breaks the pipe at once for one side, and later for the other.
func (p *pipe) cut(byReader bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	reader := func() {
		p.reader.reset = true
		p.buf = bytes.Buffer{}
		p.readDeadline.stop()
	}
	writer := func() {
		p.writer.reset = true
		p.writeDeadline.stop()
	}
	if byReader {
		reader()
		p.later(2*p.latency, writer)
	} else {
		writer()
		p.later(2*p.latency, reader)
	}
	p.changed.Broadcast()
}

func (p *pipe) setReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reader.closed {
		return net.ErrClosed
	}
	p.readDeadline.stop()
	p.readDeadline = p.newDeadline(t)
	return nil
}

func (p *pipe) setWriteDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writer.closed {
		return net.ErrClosed
	}
	p.writeDeadline.stop()
	p.writeDeadline = p.newDeadline(t)
	return nil
}

func (p *pipe) newDeadline(t time.Time) *deadline {
	d := &deadline{}
	if t.IsZero() {
		return d
	}
	wait := time.Until(t)
	if wait <= 0 {
		d.expired = true
		p.changed.Broadcast()
		return d
	}
	d.timer = time.AfterFunc(wait, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		d.expired = true
		p.changed.Broadcast()
	})
	return d
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}
