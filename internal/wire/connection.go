package wire

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
)

// A countedConnection is a TCP connection that counts the bytes it carries. It counts below
// TLS, because a TLS connection buffers, and writes more than it is given.
//
// A connection of a write also decides once whether it may carry its request. The first event
// wins:
//
//	                      ┌─ the first byte of the request leaves ─► used
//	unclaimed ─► waiting ─┤
//	                      └─ the other side ends it or speaks, ────► spoilt
//	                         this side closes it, or the
//	                         deadline of the attempt has passed
//
// A spoilt connection refuses the request. None of its bytes leaves, so the write is proven
// unsent. Without this, a request could go into a connection that the other side has already
// closed, and its outcome would be unknown.
type countedConnection struct {
	net.Conn
	written   atomic.Int64
	state     atomic.Int32
	encrypted bool                      // TLS is above it, so reads may bring a session ticket
	lost      func()                    // called when it is spoilt; nil: not called
	user      atomic.Pointer[connTrace] // the attempt that uses it, or nobody
}

const (
	unclaimed = iota // not reserved for a write: it serves reads, or is still being made
	waiting          // for the request of a write
	used
	spoilt
)

// nobody marks an idle connection after its response was read.
var nobody = new(connTrace)

var errSpoilt = fmt.Errorf("the connection ended before its request: %w", net.ErrClosed)

// shorterThanRequest is larger than TLS's own records, such as the alert that closes a
// connection, and smaller than any request in TLS.
const shorterThanRequest = 80

// Read ends a connection that receives data outside a request. net/http would print the data
// to the process's log.
func (c *countedConnection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	switch {
	case n > 0 && (c.user.Load() == nobody || c.written.Load() == 0):
		c.spoil()
		return 0, io.EOF
	case err != nil || n > 0 && !c.encrypted:
		if c.spoil() && err == nil {
			return 0, io.EOF
		}
	}
	return n, err
}

// Write counts before it writes, so that the count is complete when a response is seen.
// Afterwards it subtracts the bytes that were not written.
func (c *countedConnection) Write(p []byte) (int, error) {
	if err := c.mayWrite(len(p)); err != nil {
		return 0, err
	}
	c.written.Add(int64(len(p)))
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n - len(p)))
	return n, err
}

// mayWrite takes the last look at the deadline, before the first byte of a request.
func (c *countedConnection) mayWrite(n int) error {
	switch c.state.Load() {
	case waiting:
		if t := c.user.Load(); t != nil && passed(t.deadline) {
			c.spoil()
			return fault.ErrPassed
		}
		if ofTLS := c.encrypted && n < shorterThanRequest; ofTLS || !c.state.CompareAndSwap(waiting, used) {
			return errSpoilt
		}
	case spoilt:
		return errSpoilt
	}
	return nil
}

// passed checks both clocks. The monotonic clock and all timers stop while the machine is
// suspended. The wall clock can be set back.
func passed(deadline time.Time) bool {
	now := time.Now()
	return !deadline.IsZero() && (!now.Before(deadline) || !now.Round(0).Before(deadline.Round(0)))
}

func (c *countedConnection) Close() error {
	c.spoil()
	return c.Conn.Close()
}

// spoil reports whether the connection was waiting until now.
func (c *countedConnection) spoil() bool {
	if !c.state.CompareAndSwap(waiting, spoilt) {
		return false
	}
	if c.lost != nil {
		c.lost()
	}
	return true
}

// refuse stops the only request of a connection, unless its first byte has left.
func (c *countedConnection) refuse() {
	c.state.CompareAndSwap(unclaimed, spoilt)
	c.spoil()
}

func (c *countedConnection) BytesWritten() int64 { return c.written.Load() }

// counterOf finds the counted connection below a connection. It returns nil for a connection of
// the caller.
func counterOf(c net.Conn) *countedConnection {
	// With an https proxy, two TLS layers lie above the connection.
	for t, ok := c.(*tls.Conn); ok; t, ok = c.(*tls.Conn) {
		c = t.NetConn()
	}
	counted, _ := c.(*countedConnection)
	return counted
}
