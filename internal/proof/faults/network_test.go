package faults

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox/memnet"
)

// A dialFault is what befalls one connection, from its making to its writes.
type dialFault struct {
	refused  bool
	noHost   bool
	noLookup bool
	hangs    bool
	delay    time.Duration
	breaks   bool // after so many bytes that the client writes
	writes   int64
	how      ending
	limit    time.Duration // that the service waits for a request; 0: for good
	says408  bool          // before it ends a connection without one
}

func (f dialFault) String() string { return set(f) }

func (f dialFault) err() error {
	switch {
	case f.refused:
		return memnet.ErrRefused
	case f.noHost:
		return &net.DNSError{Err: "no such host", Name: "faults.invalid", IsNotFound: true}
	case f.noLookup:
		return &net.DNSError{Err: "server misbehaving", Name: "faults.invalid", IsTemporary: true}
	}
	return nil
}

func drawDialFault(c chance) dialFault {
	return pick(c,
		dialFault{},
		dialFault{refused: true},
		dialFault{noHost: true},
		dialFault{noLookup: true},
		dialFault{hangs: true},
		dialFault{delay: c.within(longestDial)},
		dialFault{breaks: true},
		dialFault{breaks: true, writes: 1 + c.Int64N(600), how: pick(c, reset, closed)},
		dialFault{breaks: true, writes: 1 + c.Int64N(4000), how: pick(c, reset, closed)},
		dialFault{limit: 1 + c.within(2*time.Second), how: pick(c, reset, closed)},
		dialFault{limit: 1 + c.within(2*time.Second), says408: true},
	)
}

// A network joins the client's HTTP transport to the service.
type network struct {
	w         *world
	listener  *memnet.Listener
	server    *http.Server
	transport *http.Transport
	open      atomic.Int64

	mu     sync.Mutex
	dials  map[attemptName]int
	made   int         // connections
	dialed []dialFault // and not accepted yet, in this order
}

type serverConnKey struct{}

func newNetwork(w *world) *network {
	n := &network{w: w, listener: memnet.Listen(), dials: map[attemptName]int{}}
	n.listener.Latency = n.latency
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!w.settings.http2)
	protocols.SetUnencryptedHTTP2(w.settings.http2)
	n.server = &http.Server{
		Handler:   w.service,
		Protocols: protocols,
		ErrorLog:  log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, serverConnKey{}, c)
		},
	}
	go n.server.Serve(serverListener{n.listener, n})
	n.transport = &http.Transport{
		DialContext:            n.dial,
		Protocols:              protocols,
		DisableKeepAlives:      w.settings.idle == 0,
		IdleConnTimeout:        w.settings.idle,
		MaxIdleConnsPerHost:    8,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if w.storm.ends > 0 {
		// Without pings net/http sends requests into an HTTP/2 connection that is dead
		// for as long as TCP does not know.
		n.transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second}
	}
	return n
}

func (n *network) close() { n.server.Close() }

// latency differs from connection to connection, so that hardly anything happens
// at the same time.
func (n *network) latency() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made++
	return 20*time.Microsecond + time.Duration(n.w.chance(fmt.Sprint("latency ", n.made)).IntN(9973))
}

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	a := attemptOf(ctx)
	n.mu.Lock()
	n.dials[a]++
	dial := n.dials[a]
	n.mu.Unlock()
	f := n.w.dialFault(a, dial)
	if f != (dialFault{}) {
		n.w.note("%v: dial: %v", a, f)
	}
	if f.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if f.delay > 0 && !sleep(ctx, f.delay) {
		return nil, ctx.Err()
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.dialed = append(n.dialed, f)
	n.mu.Unlock()
	c, err := n.listener.Dial(ctx)
	if err != nil {
		n.w.violate(unreachable, "%v", err)
		return nil, err
	}
	n.open.Add(1)
	return &clientConn{Conn: c, fault: f, closed: sync.OnceFunc(func() { n.open.Add(-1) })}, nil
}

// A clientConn fails writes when their time has come.
type clientConn struct {
	net.Conn
	fault  dialFault
	closed func()

	mu      sync.Mutex
	written int64
}

func (c *clientConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if left := c.fault.writes - c.written; c.fault.breaks && left < int64(len(p)) {
		n, _ := c.Conn.Write(p[:max(0, left)])
		c.written += int64(n)
		if c.fault.how == reset {
			c.Conn.(*memnet.Conn).Reset()
		}
		c.Close()
		return n, &net.OpError{Op: "write", Net: "memnet", Err: syscall.EPIPE}
	}
	n, err := c.Conn.Write(p)
	c.written += int64(n)
	return n, err
}

func (c *clientConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// A serverListener gives the service connections that it can end at any byte.
type serverListener struct {
	net.Listener
	n *network
}

func (l serverListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.n.mu.Lock()
	f := l.n.dialed[0]
	l.n.dialed = l.n.dialed[1:]
	l.n.mu.Unlock()
	conn := &serverConn{Conn: c}
	if f.limit > 0 {
		conn.limit = time.AfterFunc(f.limit, func() {
			if f.says408 {
				io.WriteString(c, "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			}
			l.n.w.count("connection ended that carried no request")
			conn.cut(f.how)
		})
	}
	return conn, nil
}

type serverConn struct {
	net.Conn
	requests atomic.Uint32
	limit    *time.Timer // for the first byte; nil: none
	mu       sync.Mutex
	ends     bool
	left     int // bytes to write until it ends
	how      ending
	ended    bool // it has
}

func (c *serverConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.limit != nil {
		c.limit.Stop()
	}
	return n, err
}

// end ends the connection after so many more bytes.
func (c *serverConn) end(after int, how ending) {
	c.mu.Lock()
	if c.ended {
		after, how = 0, stalled // for good: what came later would be out of its place
	}
	c.ends, c.left, c.how = true, after, how
	c.mu.Unlock()
	if after == 0 && how != stalled {
		c.cut(how)
	}
}

func (c *serverConn) cut(how ending) {
	if how == reset {
		c.Conn.(*memnet.Conn).Reset()
	}
	c.Close()
}

// Write holds no lock while it waits for room: in fake time nothing moves as long as
// somebody waits for one.
func (c *serverConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	n, cut, how := len(p), c.ends && c.left < len(p), c.how
	if cut {
		n, c.ended = c.left, true
	}
	c.left -= n
	c.mu.Unlock()
	written, err := c.Conn.Write(p[:n])
	switch {
	case !cut:
		return written, err
	case how == stalled:
		return len(p), nil
	}
	c.cut(how)
	return 0, net.ErrClosed
}

// sleep tells whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
