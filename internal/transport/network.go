package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"time"
)

// maxHeaderBytes bounds the header of a response. net/http's default is 10 MiB, which is a
// gigabyte for a hundred calls in flight.
const maxHeaderBytes = 64 << 10

// newTransport uses HTTP/1.1 only. With HTTP/2, net/http resends requests on its own, a lost
// connection leaves all its requests in doubt, and their bytes cannot be told apart. HTTP/1.1
// costs no speed: many connections are faster than a few shared ones.
func newTransport(s *Settings) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	// Calls have their own timeouts. These shorter ones leave time for another attempt after
	// a host that does not respond.
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	dial := dialer.DialContext
	if s.dial != nil {
		dial = s.dial
	}
	t := &http.Transport{
		Proxy: *cmp.Or(s.proxy, new(proxyForTLS)),
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			counted := &countedConnection{Conn: c}
			if d, ok := ctx.Value(dialKey{}).(*dialling); ok {
				d.connected(counted)
			}
			return counted, nil
		},
		// net/http would put the proxy's status text into the error.
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
			if resp.StatusCode != http.StatusOK {
				return &proxyRefusal{resp.StatusCode}
			}
			return nil
		},
		TLSClientConfig:        &tls.Config{},
		TLSHandshakeTimeout:    5 * time.Second,
		MaxIdleConnsPerHost:    1024, // net/http's default of 2 would close most of a bulk call's
		IdleConnTimeout:        s.ConnectionReuse,
		DisableKeepAlives:      s.ConnectionReuse == 0,
		MaxResponseHeaderBytes: maxHeaderBytes,
		Protocols:              &protocols,
	}
	if s.tls != nil {
		t.TLSClientConfig = s.tls().Clone()
	}
	// Keep the caller's configuration, except where it would break a promise.
	t.TLSClientConfig.MinVersion = max(t.TLSClientConfig.MinVersion, tls.VersionTLS12)
	t.TLSClientConfig.NextProtos = nil // the transport cannot speak h2
	// A resumed session does not check certificates again, so do not resume if the caller set
	// a certificate or a check.
	if c := t.TLSClientConfig; c.ClientSessionCache == nil && c.VerifyPeerCertificate == nil && c.GetClientCertificate == nil && len(c.Certificates) == 0 {
		c.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	if check := t.TLSClientConfig.VerifyConnection; check != nil {
		t.TLSClientConfig.VerifyConnection = func(s tls.ConnectionState) error { return ownRefusal(check(s)) }
	}
	if check := t.TLSClientConfig.VerifyPeerCertificate; check != nil {
		t.TLSClientConfig.VerifyPeerCertificate = func(raw [][]byte, chains [][]*x509.Certificate) error { return ownRefusal(check(raw, chains)) }
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

// A network sends the request of an attempt and traces it.
type network func(*http.Request, *attempt) (*http.Response, error)

// direct is the network of the library's own transport. held is true if a function of the
// caller may run in it: a proxy function, or a check in a tls.Config.
func direct(transport *http.Transport, writes *ahead, held bool) network {
	return func(req *http.Request, a *attempt) (*http.Response, error) {
		send := transport.RoundTrip
		if a.write {
			send = func(req *http.Request) (*http.Response, error) { return writes.send(req, a.newBody) }
		}
		a.trace.seen.Traced = true // without a connection, nothing was sent
		req = req.WithContext(a.trace.withTrace(req.Context()))
		if !held {
			return send(req)
		}
		resp, left, err := holdRoundTrip(req, send)
		if left && a.write {
			a.trace.leave()
		}
		return resp, err
	}
}

// callers is the network of the caller's transport. An *http.Transport sends a request once
// and reports its events. Any other transport may send the request unseen, so it proves
// nothing.
func callers(transport http.RoundTripper) network {
	_, plain := transport.(*http.Transport)
	return func(req *http.Request, a *attempt) (*http.Response, error) {
		a.trace.uncounted = !plain
		resp, left, err := holdRoundTrip(req.WithContext(a.trace.withTrace(req.Context())), transport.RoundTrip)
		if left {
			a.trace.record(func() { a.trace.uncounted = true })
		}
		if !plain {
			holdBody(req.Context(), resp)
		}
		return resp, err
	}
}

// refuse closes the body, as a RoundTripper must.
func refuse(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		req.Body.Close()
	}
	return nil, err
}
