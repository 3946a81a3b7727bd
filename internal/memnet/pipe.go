package memnet

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// capacity bounds what one direction holds, so that a peer that does not read
// slows the writer down instead of growing the heap.
const capacity = 64 << 10

// A pipe is one direction of a connection.
type pipe struct {
	mu            sync.Mutex
	changed       *sync.Cond
	buf           bytes.Buffer
	written       int64
	readerClosed  bool
	writerClosed  bool
	reset         bool
	readDeadline  *deadline
	writeDeadline *deadline
}

// A deadline is replaced and never changed, so a timer that fires late can mark
// only the deadline it was made for.
type deadline struct {
	timer   *time.Timer
	expired bool
}

func newPipe() *pipe {
	p := &pipe{readDeadline: &deadline{}, writeDeadline: &deadline{}}
	p.changed = sync.NewCond(&p.mu)
	return p
}

func (p *pipe) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.readerClosed:
			return 0, net.ErrClosed
		case p.reset:
			return 0, os.NewSyscallError("read", syscall.ECONNRESET)
		case p.readDeadline.expired:
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		case p.buf.Len() > 0:
			n, err := p.buf.Read(b)
			p.changed.Broadcast()
			return n, err
		case p.writerClosed:
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
		case p.writerClosed:
			return n, net.ErrClosed
		case p.reset:
			return n, os.NewSyscallError("write", syscall.ECONNRESET)
		case p.writeDeadline.expired:
			return n, os.ErrDeadlineExceeded
		case p.readerClosed:
			return n, os.NewSyscallError("write", syscall.EPIPE)
		case n == len(b):
			return n, nil
		}
		if free := capacity - p.buf.Len(); free > 0 {
			k := min(free, len(b)-n)
			p.buf.Write(b[n : n+k])
			n += k
			p.written += int64(k)
			p.changed.Broadcast()
			continue
		}
		p.changed.Wait()
	}
}

func (p *pipe) closeReader() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readerClosed = true
	p.buf = bytes.Buffer{}
	p.readDeadline.stop()
	p.changed.Broadcast()
}

func (p *pipe) closeWriter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writerClosed = true
	p.writeDeadline.stop()
	p.changed.Broadcast()
}

func (p *pipe) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reset = true
	p.buf = bytes.Buffer{}
	p.readDeadline.stop()
	p.writeDeadline.stop()
	p.changed.Broadcast()
}

func (p *pipe) setReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readerClosed {
		return net.ErrClosed
	}
	p.readDeadline.stop()
	p.readDeadline = p.newDeadline(t)
	return nil
}

func (p *pipe) setWriteDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writerClosed {
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
