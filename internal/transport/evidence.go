package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync"
	"time"
)

// Evidence is what is known of one attempt, from the connection's own events.
// It is exposed as refunds.Evidence.
type Evidence struct {
	Began           time.Time // when the attempt was handed to the network
	Ended           time.Time // when it had its answer, or failed
	Traced          bool      // the HTTP transport reported its events at all
	Connected       bool      // a connection was there for the request
	BytesWritten    int64     // bytes written to it; -1: not counted
	RequestWritten  bool      // the whole request was handed to the connection
	ResponseStarted bool      // a first byte of an answer arrived
	StatusCode      int       // of the answer; 0: none
}

// unsent tells whether the evidence proves that no byte of the request left.
// WroteHeaders and WroteRequest are no such proof: they fire, or fail to fire,
// regardless of what reached the wire. No events at all prove nothing.
func (e *Evidence) unsent() bool {
	return e.Traced && (!e.Connected || e.BytesWritten == 0)
}

// byteCounter is met by connections that count what is written to them.
type byteCounter interface{ BytesWritten() int64 }

// A witness collects the evidence of one attempt. Its hooks run on goroutines
// of the HTTP transport.
type witness struct {
	trace       httptrace.ClientTrace
	mu          sync.Mutex
	asked       bool
	connections int
	counter     byteCounter
	before      int64
	readBefore  int64
	wrote       bool
	answered    bool
}

func (w *witness) watch(ctx context.Context) context.Context {
	// Got1xxResponse stays unset: setting it lifts net/http's bound on them.
	w.trace = httptrace.ClientTrace{
		GetConn: func(string) { w.note(func() { w.asked = true }) },
		GotConn: func(info httptrace.GotConnInfo) {
			w.note(func() {
				w.connections++
				if w.counter = countedConn(info.Conn); w.counter != nil {
					w.before = w.counter.BytesWritten()
				}
				if c, ok := w.counter.(*countedConnection); ok {
					w.readBefore = c.read.Load()
				}
			})
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			w.note(func() { w.wrote = w.wrote || info.Err == nil })
		},
		GotFirstResponseByte: func() { w.note(func() { w.answered = true }) },
	}
	return httptrace.WithClientTrace(ctx, &w.trace)
}

func (w *witness) note(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *witness) report() Evidence {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := Evidence{
		Traced:          w.asked || w.connections > 0,
		Connected:       w.connections > 0,
		BytesWritten:    -1,
		RequestWritten:  w.wrote,
		ResponseStarted: w.answered,
	}
	switch {
	case w.connections == 0 && w.asked:
		e.BytesWritten = 0
	case w.connections == 1 && w.counter != nil:
		// With a second connection net/http has resent the request by itself, and
		// the count of one connection would be a part of the truth.
		e.BytesWritten = w.counter.BytesWritten() - w.before
	}
	return e
}

// flooded tells whether the connection took in as much as an answer's header
// may hold, which is how a failure looks when the header never ended.
func (w *witness) flooded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, ok := w.counter.(*countedConnection)
	return ok && w.answered && c.read.Load()-w.readBefore >= maxHeaderBytes
}

// countedConn finds the counter of a connection that carries one request at a
// time. HTTP/2 shares a connection, so that its count proves nothing.
func countedConn(c net.Conn) byteCounter {
	if t, ok := c.(*tls.Conn); ok {
		if t.ConnectionState().NegotiatedProtocol == "h2" {
			return nil
		}
		c = t.NetConn()
	}
	counter, _ := c.(byteCounter)
	return counter
}
