package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// maxHeaderBytes bounds the header of an answer; net/http's default is 10 MiB.
const maxHeaderBytes = 64 << 10

// Network configures the HTTP transport that a client uses unless its caller
// brings one.
type Network struct {
	IdleConnTimeout    time.Duration // shorter than the server's, or requests meet closing connections
	DisableKeepAlives  bool          // net/http writes what arrives on an idle connection to the standard log
	DisableCompression bool          // ask for the identity encoding
}

// newTransport speaks HTTP/1.1 only: net/http then resends nothing that has a
// body without GetBody, one connection carries one request, and a pool as wide
// as the concurrency outruns few shared streams.
func newTransport(n Network) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		Proxy: proxyForTLS,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &countedConnection{Conn: c}, nil
		},
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
			if answer.StatusCode != http.StatusOK {
				return &proxyRefusal{answer.StatusCode}
			}
			return nil
		},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, ClientSessionCache: tls.NewLRUClientSessionCache(0)},
		TLSHandshakeTimeout:    5 * time.Second,
		MaxIdleConnsPerHost:    1024,
		IdleConnTimeout:        n.IdleConnTimeout,
		DisableKeepAlives:      n.DisableKeepAlives,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     n.DisableCompression,
		Protocols:              &protocols,
	}
}

// proxyForTLS uses the environment's proxy for https alone, where it sees no
// more than the host.
func proxyForTLS(r *http.Request) (*url.URL, error) {
	if r.URL.Scheme != "https" {
		return nil, nil
	}
	return http.ProxyFromEnvironment(r)
}

type proxyRefusal struct{ status int }

func (*proxyRefusal) Error() string { return "the proxy refused to connect" }

// A countedConnection knows how many bytes it carried, which is the proof that
// a failed request never left.
type countedConnection struct {
	net.Conn
	written, read atomic.Int64
}

func (c *countedConnection) Write(p []byte) (int, error) {
	// Counted before, so that an answer never finds too few.
	c.written.Add(int64(len(p)))
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n - len(p)))
	return n, err
}

func (c *countedConnection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

func (c *countedConnection) BytesWritten() int64 { return c.written.Load() }
