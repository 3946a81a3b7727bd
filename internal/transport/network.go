package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Evidence is what is known of one attempt, from the connection's own events.
// It is exposed as refunds.Evidence.
type Evidence struct {
	Began           time.Time // when the attempt was handed to the network
	Ended           time.Time // when its response had arrived, or it failed
	Traced          bool      // the HTTP transport reported its events at all
	Connected       bool      // a connection was there for the request
	BytesWritten    int64     // bytes written to it; -1: not counted
	RequestWritten  bool      // the whole request was handed to the connection
	ResponseStarted bool      // a first byte of a response arrived
	StatusCode      int       // of the response; 0: none
}

// unsent tells whether the evidence proves that no byte of the request left.
//
// This is what a refund's retry rests on, so it takes nothing but proof. The
// trace events WroteHeaders and WroteRequest are none: they fire, or fail to
// fire, regardless of what reached the wire. An error's type is none either: the
// same "connection reset" comes before the first byte and after the last. What
// counts is that there never was a connection, or that the connection took no
// byte. A transport that reports no events at all proves nothing.
func (e Evidence) unsent() bool {
	return e.Traced && (!e.Connected || e.BytesWritten == 0)
}

// premature tells whether a response came before the whole request had left, of
// which size is known to be the least. Such a response cannot be about what the
// request says: it comes from a proxy, or belongs to another request. Where there
// was no connection, it was made on this side, by a fake for example.
func (e Evidence) premature(size int64) bool {
	return e.Traced && e.Connected && (!e.RequestWritten || e.BytesWritten >= 0 && e.BytesWritten < size)
}

// A connTrace collects the evidence of one attempt. Its hooks run on goroutines
// of the HTTP transport, and can still run when the attempt has ended.
type connTrace struct {
	mu            sync.Mutex
	seen          Evidence // but for what is counted
	connections   int
	counter       byteCounter   // of the last connection
	writtenBefore int64         // by the requests that used the connection before
	writeEnded    chan struct{} // holds a value when writing the request has ended, well or not
	entered       bool          // a write is below a wrapper just now
	left          bool          // the wrapper has ended the attempt
	untold        bool          // something was sent of which it is not known what it was
	size          int64         // of a body that a wrapper may have changed
	asked         atomic.Bool   // the HTTP transport was asked for a connection
}

// withTrace returns a context whose requests report to t.
func (t *connTrace) withTrace(ctx context.Context) context.Context {
	// Got1xxResponse stays unset: with that hook, net/http no longer bounds how many
	// 1xx responses it reads.
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { t.record(func() { t.seen.Traced = true }); t.asked.Store(true) },
		GotConn: func(info httptrace.GotConnInfo) {
			t.record(func() {
				t.connections++
				t.seen.Traced, t.seen.Connected = true, true
				if t.counter = counterOf(info.Conn); t.counter != nil {
					t.writtenBefore = t.counter.BytesWritten()
				}
			})
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			t.record(func() { t.seen.RequestWritten = t.seen.RequestWritten || info.Err == nil })
			select {
			case t.writeEnded <- struct{}{}:
			default: // it was resent, and nobody has looked
			}
		},
		GotFirstResponseByte: func() { t.record(func() { t.seen.ResponseStarted = true }) },
	})
}

func (t *connTrace) record(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
}

// evidence is what the trace has come to.
func (t *connTrace) evidence() (e Evidence) {
	t.record(func() { e = t.read() })
	return e
}

// read does not claim to know what it cannot: -1 bytes are bytes that were not counted.
func (t *connTrace) read() Evidence {
	e := t.seen
	e.Traced = e.Traced && !t.untold
	switch {
	case e.Traced && t.connections == 1 && t.counter != nil:
		e.BytesWritten = t.counter.BytesWritten() - t.writtenBefore
	case !e.Traced || e.Connected:
		// A second connection means that net/http resent the request by itself. The
		// count of one of them would be half the truth, and prove something false.
		e.BytesWritten = -1
	}
	return e
}

// awaitWrite waits until it is known how writing the request ended. A response can
// overtake that news by microseconds; when the request was not written whole,
// net/http gives up after 50 milliseconds.
func (t *connTrace) awaitWrite(ctx context.Context) {
	if !t.evidence().Connected {
		return
	}
	select {
	case <-t.writeEnded:
	case <-ctx.Done():
	case <-time.After(time.Second): // a transport that does not tell
	}
}

// enter admits a write to the network, unless it is there or has left a byte. A
// wrapper that tries again may do so only while nothing has been sent. The last one to
// enter tells the size of the body.
func (t *connTrace) enter(size int64) (entered bool) {
	t.record(func() {
		if entered = !t.entered && !t.left && t.read().unsent(); entered {
			t.entered, t.size = true, size
		}
	})
	return entered
}

// leave ends the attempt for a wrapper. One that does not wait for what it has begun
// leaves it to an end that nobody knows.
func (t *connTrace) leave(untold bool) {
	t.record(func() { t.left, t.untold = true, t.untold || untold || t.entered })
}

// A byteCounter is a connection that counts what is written to it.
type byteCounter interface{ BytesWritten() int64 }

// counterOf finds the counter of a connection that carries one request at a
// time. HTTP/2 shares a connection among requests, so that its count says
// nothing of any one of them.
func counterOf(c net.Conn) byteCounter {
	// TLS to a proxy lies below TLS to the service.
	for t, ok := c.(*tls.Conn); ok; t, ok = c.(*tls.Conn) {
		if t.ConnectionState().NegotiatedProtocol == "h2" {
			return nil
		}
		c = t.NetConn()
	}
	counter, _ := c.(byteCounter)
	return counter
}

// A countedConnection counts the bytes that it carries. It is the TCP
// connection, below TLS: a TLS connection buffers, and writes more than it is
// given.
type countedConnection struct {
	net.Conn
	written atomic.Int64
}

// Write counts before it writes, so that whoever sees the response sees the
// whole count, and takes back what was not written.
func (c *countedConnection) Write(p []byte) (int, error) {
	c.written.Add(int64(len(p)))
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n - len(p)))
	return n, err
}

func (c *countedConnection) BytesWritten() int64 { return c.written.Load() }

// maxHeaderBytes bounds the header of a response; net/http's default is 10 MiB. A
// hundred calls in flight would take a gigabyte of it.
const maxHeaderBytes = 64 << 10

// newTransport speaks HTTP/1.1 only. With HTTP/2, net/http would resend requests
// by itself, a lost connection would leave all its requests in doubt at once, and
// their bytes could not be told apart. Nothing is lost in exchange: a pool as wide
// as the concurrency outruns a few shared connections.
func newTransport(s *Settings) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	// What a call may take is bounded elsewhere. These make that a host which does not
	// respond at all leaves time for another attempt.
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	t := &http.Transport{
		Proxy: *cmp.Or(s.proxy, new(proxyForTLS)),
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &countedConnection{Conn: c}, nil
		},
		// net/http would make an error of the proxy's status line, which is its text.
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
	// A configuration of the caller's is kept but for what the promises rest on.
	t.TLSClientConfig.MinVersion = max(t.TLSClientConfig.MinVersion, tls.VersionTLS12)
	t.TLSClientConfig.NextProtos = nil // "h2" would be a promise that the protocols above break
	t.TLSClientConfig.ClientSessionCache = cmp.Or(t.TLSClientConfig.ClientSessionCache, tls.NewLRUClientSessionCache(0))
	if check := t.TLSClientConfig.VerifyConnection; check != nil {
		t.TLSClientConfig.VerifyConnection = func(s tls.ConnectionState) error { return ownRefusal(check(s)) }
	}
	if check := t.TLSClientConfig.VerifyPeerCertificate; check != nil {
		t.TLSClientConfig.VerifyPeerCertificate = func(raw [][]byte, chains [][]*x509.Certificate) error { return ownRefusal(check(raw, chains)) }
	}
	return t
}

// proxyForTLS uses the environment's proxy for https alone, where it sees no
// more than the host. Without TLS, the proxy that a machine happens to have configured
// would read cards and tokens; who wants that says so with WithProxy.
func proxyForTLS(r *http.Request) (*url.URL, error) {
	if r.URL.Scheme != "https" {
		return nil, nil
	}
	return http.ProxyFromEnvironment(r)
}

type proxyRefusal struct{ status int }

func (*proxyRefusal) Error() string { return "the proxy refused to connect" }

// Is makes it what it is for the caller even where its condition is ErrForbidden.
func (*proxyRefusal) Is(target error) bool { return target == ErrNoResponse }

// A network sends the request of an attempt, and has it traced.
type network func(*http.Request, *attempt) (*http.Response, error)

// traced is the network of a transport that is reached directly.
func traced(transport http.RoundTripper) network {
	return func(req *http.Request, a *attempt) (*http.Response, error) {
		return transport.RoundTrip(req.WithContext(a.trace.withTrace(req.Context())))
	}
}

// A wrapped network is the library's transport below a RoundTripper of the
// caller's, which may do to a request what it likes: replace its context, send
// it twice, or respond to it alone. What is promised of a write has to hold all the
// same, so that the evidence is taken here, below the wrapper.
//
// It has to be told of each request which attempt it belongs to, and what to make of
// one that belongs to none. To take such a request for the attempt's own would lend it
// a proof that is another's; to take it for nothing would call a refund unsent that a
// wrapper has sent by hand. So it voids the proofs of all attempts that it could be,
// and is refused where it could be a write.
type wrapped struct {
	transport *http.Transport
	top       http.RoundTripper // the caller's, around this one
	attempts  sync.Map          // until their contexts end, by the Cancel channel of their requests
	strangers atomic.Int64      // requests that belong to no attempt, as far as can be told
}

// An attemptKey finds the attempt in the context of its request.
type attemptKey struct{}

// errSentBefore ends what would be a second refund.
var errSentBefore = NewError("the request was sent before, and is not sent twice")

// errRebuilt ends what could be one.
var errRebuilt = NewError("a wrapper of the transport has to keep the context or the Cancel channel of the request")

// send hands the request of an attempt to the wrapper.
//
// The request carries its attempt twice. A context is what wrappers derive from,
// and now and then replace; Cancel is deprecated and therefore nobody's to use,
// copied by Clone and WithContext, and ends the request on the wire when the
// context that was replaced does.
func (w *wrapped) send(req *http.Request, a *attempt) (*http.Response, error) {
	a.trace.seen.Traced = true // a wrapper that never comes down here has sent nothing
	ctx := context.WithValue(req.Context(), attemptKey{}, a)
	out := req.WithContext(ctx)
	//lint:ignore SA1019 as said above
	out.Cancel = ctx.Done()
	a.out = out
	w.attempts.Store(ctx.Done(), a)
	context.AfterFunc(ctx, func() { w.attempts.Delete(ctx.Done()) })
	// A request that arrives below while this one is above may be a part of this one.
	strangers := w.strangers.Load()
	defer func() { a.trace.leave(w.strangers.Load() != strangers) }()
	return w.top.RoundTrip(out)
}

// RoundTrip is what the wrapper calls.
func (w *wrapped) RoundTrip(req *http.Request) (*http.Response, error) {
	a := w.attemptOf(req)
	switch {
	case a == nil && w.isRebuilt(req):
		return refuse(req, errRebuilt)
	case a == nil:
		// The wrapper's own, such as for a token. From here on nothing is proven of the
		// attempts in flight.
		w.strangers.Add(1)
		return w.transport.RoundTrip(req)
	case a.write && !a.trace.enter(req.ContentLength):
		return refuse(req, errSentBefore)
	}
	defer a.trace.record(func() { a.trace.entered = false })
	out := req.WithContext(a.trace.withTrace(req.Context()))
	if a.write {
		out.GetBody = nil
	}
	return w.transport.RoundTrip(out)
}

// refuse closes the body, as a RoundTripper has to.
func refuse(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		req.Body.Close()
	}
	return nil, err
}

// isRebuilt tells whether a request of no attempt may be a write that is in flight, or
// was: it would be sent unseen, and perhaps a second time.
func (w *wrapped) isRebuilt(req *http.Request) (rebuilt bool) {
	select {
	//lint:ignore SA1019 see send
	case <-req.Cancel:
		return true
	default:
	}
	w.attempts.Range(func(_, value any) bool {
		a := value.(*attempt)
		rebuilt = a.write && a.isFor(req)
		return !rebuilt
	})
	return rebuilt
}

// isFor leaves out the query, which a wrapper may add to sign the request.
func (a *attempt) isFor(req *http.Request) bool {
	return req.Method == a.out.Method && req.URL.Host == a.out.URL.Host && req.URL.Path == a.out.URL.Path
}

// attemptOf finds the attempt that a request belongs to. With the context alone, the
// request has to be the same as well: a wrapper uses it for its own requests, too.
func (w *wrapped) attemptOf(req *http.Request) *attempt {
	//lint:ignore SA1019 see send
	if a, ok := w.attempts.Load(req.Cancel); ok {
		return a.(*attempt)
	}
	if a, ok := req.Context().Value(attemptKey{}).(*attempt); ok && a.isFor(req) {
		return a
	}
	return nil
}
