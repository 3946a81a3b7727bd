// Package memnet is a network in memory: buffered, full-duplex connections that
// carry net/http without a socket.
//
// Every wait is on a sync.Cond, so inside a testing/synctest bubble a blocked
// peer is durably blocked and the bubble's clock can advance. Both ends of a
// connection belong in the same bubble.
package memnet

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	network    = "memnet"
	clientAddr = addr("memnet:1")
	serverAddr = addr("memnet:80")
)

// The addresses have the form host:port because handlers split RemoteAddr.
type addr string

func (addr) Network() string  { return network }
func (a addr) String() string { return string(a) }

// ErrRefused is the error of a dial without a listener. Like the error of a TCP dial, it
// wraps ECONNREFUSED.
var ErrRefused error = dialError(os.NewSyscallError("connect", syscall.ECONNREFUSED))

func dialError(err error) error {
	return &net.OpError{Op: "dial", Net: network, Addr: serverAddr, Err: err}
}

// A Listener accepts the connections that [Listener.Dial] makes.
type Listener struct {
	// Latency returns the delay of the next connection: what one end does reaches the other
	// end that much later. Nil is no delay. In a bubble, a delay gives the actions of both
	// ends a fixed order, because no two of them happen at the same time.
	Latency func() time.Duration

	mu      sync.Mutex
	changed *sync.Cond
	backlog []*Conn
	closed  bool
}

var _ net.Listener = (*Listener)(nil)

// Listen returns a new listener.
func Listen() *Listener {
	l := &Listener{}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// Dial connects to l without waiting for Accept. The connection is a *[Conn].
// After Close the error is [ErrRefused].
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, dialError(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrRefused
	}
	var latency time.Duration
	if l.Latency != nil {
		latency = l.Latency()
	}
	client, server := connect(latency)
	l.backlog = append(l.backlog, server)
	l.changed.Broadcast()
	return client, nil
}

// Accept implements [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.backlog) == 0 && !l.closed {
		l.changed.Wait()
	}
	if l.closed {
		return nil, &net.OpError{Op: "accept", Net: network, Addr: serverAddr, Err: net.ErrClosed}
	}
	c := l.backlog[0]
	l.backlog = l.backlog[1:]
	return c, nil
}

// Close refuses further dials and resets the connections that no Accept took.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, c := range l.backlog {
		c.Reset()
	}
	l.backlog = nil
	l.changed.Broadcast()
	return nil
}

// Addr implements [net.Listener].
func (l *Listener) Addr() net.Addr { return serverAddr }
