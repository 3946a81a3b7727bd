package memnet

import (
	"errors"
	"io"
	"net"
	"time"
)

// A Conn is one end of a connection. Its methods may be called concurrently;
// concurrent writes may interleave.
type Conn struct {
	in, out       *pipe
	local, remote addr
}

var _ net.Conn = (*Conn)(nil)

func connect(latency time.Duration) (client, server *Conn) {
	up, down := newPipe(latency), newPipe(latency)
	client = &Conn{in: down, out: up, local: clientAddr, remote: serverAddr}
	server = &Conn{in: up, out: down, local: serverAddr, remote: clientAddr}
	return client, server
}

// Read implements [net.Conn].
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	return n, c.opError("read", err)
}

// Write implements [net.Conn]. It blocks while the peer leaves a full buffer
// unread.
func (c *Conn) Write(b []byte) (int, error) {
	n, err := c.out.write(b)
	return n, c.opError("write", err)
}

// Close ends the connection in order: the peer reads what is buffered and then
// the end of the stream, and its writes fail.
func (c *Conn) Close() error {
	c.in.close(&c.in.reader, &c.in.writer)
	c.out.close(&c.out.writer, &c.out.reader)
	return nil
}

// Reset breaks the connection: unread data is lost, and both ends see
// ECONNRESET.
func (c *Conn) Reset() {
	c.in.cut(&c.in.reader, &c.in.writer)
	c.out.cut(&c.out.writer, &c.out.reader)
}

// LocalAddr implements [net.Conn].
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements [net.Conn].
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements [net.Conn].
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements [net.Conn].
func (c *Conn) SetReadDeadline(t time.Time) error {
	return c.opError("set", c.in.setDeadline(&c.in.reader, t))
}

// SetWriteDeadline implements [net.Conn].
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.opError("set", c.out.setDeadline(&c.out.writer, t))
}

func (c *Conn) opError(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: network, Source: c.local, Addr: c.remote, Err: err}
}
