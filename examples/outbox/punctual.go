package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/carddata/carddata-go/refunds"
)

// newClient returns the worker's client, with a token if there is one.
func newClient(url, token string) (*refunds.Client, error) {
	options := []refunds.Option{refunds.WithHTTPClient(&http.Client{Transport: punctual()})}
	if token != "" {
		options = append(options, refunds.WithTokenSource(refunds.StaticToken(token)))
	}
	return refunds.NewClient(url, options...)
}

// A process can be frozen between the commit of its marker and the first byte of
// the request, for so long that others take it for dead, and somebody decides. So
// the last step before the network looks at the deadline of the request once more,
// and writes nothing of one that is late: a timer may not have fired yet, and none
// does while the machine is suspended. The library counts the bytes of a connection,
// and reports such a refund as not sent.

// punctual returns a transport as the library's own, but for late requests.
func punctual() http.RoundTripper {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &punctualConn{Conn: conn}, nil
	}
	transport.TLSHandshakeTimeout = 5 * time.Second
	transport.MaxResponseHeaderBytes = 64 << 10
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 1024
	// A kept connection that the service has closed leaves an outcome unknown.
	transport.IdleConnTimeout = 2 * time.Second
	transport.DisableCompression = true
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(true)
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		deadline, _ := req.Context().Deadline()
		return transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
			GotConn: func(info httptrace.GotConnInfo) {
				if conn := punctualOf(info.Conn); conn != nil {
					conn.begin(deadline)
				}
			},
		})))
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func punctualOf(conn net.Conn) *punctualConn {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	found, _ := conn.(*punctualConn)
	return found
}

var errLate = errors.New("the deadline passed before the request left")

// A punctualConn carries one request at a time.
type punctualConn struct {
	net.Conn
	mu       sync.Mutex
	deadline time.Time // of the request; zero: before the first
	written  int64
}

func (c *punctualConn) begin(deadline time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = deadline
}

func (c *punctualConn) Write(p []byte) (int, error) {
	if !c.mayWrite(int64(len(p))) {
		return 0, errLate
	}
	return c.Conn.Write(p)
}

// mayWrite counts the bytes before they are written: never too few.
func (c *punctualConn) mayWrite(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !c.deadline.IsZero() && late(c.deadline, now, now.Round(0)) {
		return false
	}
	c.written += n
	return true
}

// BytesWritten is the library's evidence of what left.
func (c *punctualConn) BytesWritten() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written
}

// late goes by both clocks: the monotonic one stands still while the machine is
// suspended, and the wall clock can be set back.
func late(deadline, monotonic, wall time.Time) bool {
	return !monotonic.Before(deadline) || !wall.Before(deadline)
}
