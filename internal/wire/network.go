package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
)

// maxHeaderBytes bounds the header of a response. net/http's default is 10 MiB, which is a
// gigabyte for a hundred calls in flight.
const maxHeaderBytes = 64 << 10

// A Config is what a caller may set of the library's own HTTP transport.
type Config struct {
	Reuse time.Duration                                                        // how long a connection of reads stays idle; 0: each serves one request
	Dial  func(ctx context.Context, network, address string) (net.Conn, error) // nil: as usual
	Proxy *func(*http.Request) (*url.URL, error)                               // nil: the environment's
	TLS   func() *tls.Config                                                   // a closure, because it holds a private key
	Wrap  func(http.RoundTripper) http.RoundTripper
}

// newTransport uses HTTP/1.1 only. With HTTP/2, net/http resends requests on its own, a lost
// connection leaves all its requests in doubt, and their bytes cannot be told apart. HTTP/1.1
// costs no speed: many connections are faster than a few shared ones.
func newTransport(c Config) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	// Calls have their own timeouts. These shorter ones leave time for another attempt after
	// a host that does not respond.
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	dial := dialer.DialContext
	if c.Dial != nil {
		dial = c.Dial
	}
	t := &http.Transport{
		Proxy: *cmp.Or(c.Proxy, new(proxyForTLS)),
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			counted := &countedConnection{Conn: conn}
			if d, ok := ctx.Value(dialKey{}).(*dialling); ok {
				d.connected(counted)
			}
			return counted, nil
		},
		// net/http would put the proxy's status text into the error.
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
			if resp.StatusCode != http.StatusOK {
				return fault.ProxyRefusal(resp.StatusCode)
			}
			return nil
		},
		TLSClientConfig:        &tls.Config{},
		TLSHandshakeTimeout:    5 * time.Second,
		MaxIdleConnsPerHost:    1024, // net/http's default of 2 would close most of a bulk call's
		IdleConnTimeout:        c.Reuse,
		MaxResponseHeaderBytes: maxHeaderBytes,
		Protocols:              &protocols,
	}
	if c.Reuse == 0 {
		// DisableKeepAlives would also send "Connection: close", and then some services send content
		// without chunks, whose end nothing marks.
		t.MaxIdleConnsPerHost = -1
	}
	if c.TLS != nil {
		t.TLSClientConfig = c.TLS().Clone()
	}
	// Keep the caller's configuration, except where it would break a promise.
	t.TLSClientConfig.MinVersion = max(t.TLSClientConfig.MinVersion, tls.VersionTLS12)
	t.TLSClientConfig.NextProtos = nil // the transport cannot speak h2
	// A resumed session does not check certificates again, so do not resume if the caller set
	// a certificate or a check.
	if own := t.TLSClientConfig; own.ClientSessionCache == nil && own.VerifyPeerCertificate == nil && own.GetClientCertificate == nil && len(own.Certificates) == 0 {
		own.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	if check := t.TLSClientConfig.VerifyConnection; check != nil {
		t.TLSClientConfig.VerifyConnection = func(s tls.ConnectionState) error { return fault.RefusedByCheck(check(s)) }
	}
	if check := t.TLSClientConfig.VerifyPeerCertificate; check != nil {
		t.TLSClientConfig.VerifyPeerCertificate = func(raw [][]byte, chains [][]*x509.Certificate) error {
			return fault.RefusedByCheck(check(raw, chains))
		}
	}
	return t
}

// proxyForTLS uses the environment's proxy only for https, where the proxy sees only the
// host. Without TLS, it would read cards and tokens. WithProxy allows that.
func proxyForTLS(r *http.Request) (*url.URL, error) {
	if r.URL.Scheme != "https" {
		return nil, nil
	}
	return http.ProxyFromEnvironment(r)
}

// A Network sends a request once, and traces it.
type Network func(*http.Request, *Exchange) (*http.Response, error)

func (n Network) Send(req *http.Request, x *Exchange) (*http.Response, error) {
	x.trace.deadline, _ = req.Context().Deadline()
	return n(req, x)
}

// New returns the library's own network.
func New(c Config) (Network, error) {
	t := newTransport(c)
	writes := newAhead(t)
	if c.Wrap == nil {
		return direct(t, writes), nil
	}
	w := &wrapped{transport: t, writes: writes}
	if w.top = c.Wrap(w); w.top == nil {
		return nil, fault.Invalid("the function given to WithTransport returned nil")
	}
	return w.send, nil
}

// direct is the network of the library's own transport.
func direct(transport *http.Transport, writes *ahead) Network {
	return func(req *http.Request, x *Exchange) (*http.Response, error) {
		x.trace.seen.Traced = true // without a connection, nothing was sent
		req = req.WithContext(x.trace.withTrace(req.Context()))
		if x.write {
			return writes.send(req, x.newBody)
		}
		return transport.RoundTrip(req)
	}
}

// OfCaller is the network of the caller's transport. An *http.Transport sends a request once
// and reports its events. Any other transport may send the request unseen, so it proves
// nothing.
func OfCaller(transport http.RoundTripper) Network {
	_, plain := transport.(*http.Transport)
	return func(req *http.Request, x *Exchange) (*http.Response, error) {
		if x.write && passed(x.trace.deadline) { // its connections cannot look
			x.trace.seen.Traced = true // nothing was sent
			return Refuse(req, fault.ErrPassed)
		}
		x.trace.uncounted = !plain
		return transport.RoundTrip(req.WithContext(x.trace.withTrace(req.Context())))
	}
}

// Refuse closes the body, as a RoundTripper must.
func Refuse(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		req.Body.Close()
	}
	return nil, err
}
