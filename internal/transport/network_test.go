package transport

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// around is a wrapper that handles requests as f does.
func around(f func(base http.RoundTripper, r *http.Request) (*http.Response, error)) Option {
	return WithTransport(func(base http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { return f(base, r) })
	})
}

func clientOf(t *testing.T, base string, opts ...Option) *Client {
	t.Helper()
	c, err := New(kind(), base, append([]Option{WithRetryWait(0, 0)}, opts...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// refusing is the address of a port that nobody listens on.
func refusing(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// wrappers are what instrumentation and middleware do to a request.
var wrappers = map[string]func(base http.RoundTripper, r *http.Request) (*http.Response, error){
	"passes on": func(base http.RoundTripper, r *http.Request) (*http.Response, error) { return base.RoundTrip(r) },
	"clones": func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("Traceparent", "00-1")
		return base.RoundTrip(r)
	},
	"replaces the context": func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
		return base.RoundTrip(r.WithContext(context.Background()))
	},
	"clones without context": func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
		return base.RoundTrip(r.Clone(context.WithoutCancel(r.Context())))
	},
	"makes another request": func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		made, err := http.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		made.Header = r.Header
		return base.RoundTrip(made)
	},
}

// TestWrappedEvidence proves that what is known of a request does not depend on
// what a wrapper does to it.
func TestWrappedEvidence(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	defer server.Close()
	for name, wrapper := range wrappers {
		r := clientOf(t, server.URL, around(wrapper)).Do(t.Context(), write(), nil)
		if e := r.Evidence; r.Failure != nil || !e.Traced || !e.Connected || e.BytesWritten < 50 || !e.RequestWritten || !e.ResponseStarted {
			t.Errorf("%s: %+v, %v", name, e, r.err())
		}
		r = clientOf(t, refusing(t), around(wrapper)).Do(t.Context(), write(), nil)
		if e := r.Evidence; r.Outcome != OutcomeNotSent || !e.Traced || e.Connected || e.BytesWritten != 0 || r.Attempts != 4 {
			t.Errorf("%s, connection refused: %v after %d attempts, %+v", name, r.Outcome, r.Attempts, e)
		}
	}
}

// TestWrappedCall proves that a call ends with its context although a wrapper keeps
// the context from the network.
func TestWrappedCall(t *testing.T) {
	arrived, hang := make(chan bool, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		arrived <- true
		<-hang
	}))
	defer server.Close()
	defer close(hang)
	for name, wrapper := range wrappers {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-arrived
			cancel()
		}()
		r := clientOf(t, server.URL, around(wrapper)).Do(ctx, write(), nil)
		check(t, r.err(), context.Canceled)
		if r.Outcome != OutcomeUnknown || r.Evidence.BytesWritten < 50 {
			t.Errorf("%s: %v, %+v", name, r.Outcome, r.Evidence)
		}
	}
}

// TestWrapperThatRetries proves that no wrapper sends a write twice in an attempt
// once a byte was written, and that it may try again before.
func TestWrapperThatRetries(t *testing.T) {
	var served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		served.Add(1)
		w.WriteHeader(503)
	}))
	defer server.Close()
	for name, wrapper := range wrappers {
		served.Store(0)
		twice := func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if resp, err := wrapper(base, r); err == nil {
				resp.Body.Close()
			}
			again := r.Clone(r.Context())
			again.Body = io.NopCloser(bytes.NewReader(body))
			return wrapper(base, again)
		}
		r := clientOf(t, server.URL, around(twice)).Do(t.Context(), write(), nil)
		check(t, r.err(), errSentBefore, ErrNoResponse)
		if served.Load() != 1 || r.Outcome != OutcomeUnknown {
			t.Errorf("%s: sent %d times, %v", name, served.Load(), r.Outcome)
		}
		served.Store(0)
		call := write()
		call.Write = false
		clientOf(t, server.URL, around(twice), WithMaxRetries(0)).Do(t.Context(), call, nil)
		if served.Load() != 2 {
			t.Errorf("%s: a read was sent %d times, want 2", name, served.Load())
		}
		r = clientOf(t, refusing(t), around(twice), WithMaxRetries(0)).Do(t.Context(), write(), nil)
		if r.Outcome != OutcomeNotSent || errors.Is(r.err(), errSentBefore) {
			t.Errorf("%s, connection refused: %v, %v", name, r.Outcome, r.err())
		}
	}
	// Three at once are two too many, whichever comes first.
	served.Store(0)
	hedge := func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
		done := make(chan bool, 3)
		for range 3 {
			go func() {
				again := r.Clone(r.Context())
				again.Body = io.NopCloser(strings.NewReader("{}"))
				resp, err := base.RoundTrip(again)
				if err == nil {
					resp.Body.Close()
				}
				done <- true
			}()
		}
		for range 3 {
			<-done
		}
		return nil, io.ErrUnexpectedEOF
	}
	for range 20 {
		served.Store(0)
		if r := clientOf(t, server.URL, around(hedge)).Do(t.Context(), write(), nil); served.Load() != 1 || r.Outcome != OutcomeUnknown {
			t.Errorf("hedged: sent %d times, %v", served.Load(), r.Outcome)
		}
	}
}

// TestWrappedWriteIsNotResent proves that net/http gets no body that it could send again,
// as it does on a kept connection where a header says that this does no harm.
func TestWrappedWriteIsNotResent(t *testing.T) {
	var served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if io.Copy(io.Discard, r.Body); served.Add(1) == 2 {
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	for name, wrapper := range wrappers {
		served.Store(0)
		c := clientOf(t, server.URL, around(wrapper), WithHeader("Idempotency-Key", "k"))
		c.Do(t.Context(), write(), nil)
		if r := c.Do(t.Context(), write(), nil); served.Load() != 2 || r.Outcome != OutcomeUnknown {
			t.Errorf("%s: %d requests, %v", name, served.Load(), r.Outcome)
		}
	}
}

// TestWrapperThatLeaves proves that nothing is claimed of a write that the wrapper does
// not wait for, and that it cannot send it later.
func TestWrapperThatLeaves(t *testing.T) {
	var served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
	defer server.Close()
	begun, gone, done := make(chan bool), make(chan bool), make(chan bool)
	leave := func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
		trace := &httptrace.ClientTrace{GetConn: func(string) { begun <- true; <-gone }}
		go func() {
			defer close(done)
			base.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
		}()
		<-begun
		return nil, io.ErrUnexpectedEOF
	}
	r := clientOf(t, server.URL, around(leave), WithMaxRetries(0)).Do(t.Context(), write(), nil)
	close(gone)
	if <-done; r.Outcome != OutcomeUnknown {
		t.Errorf("while it connects: %v, %+v", r.Outcome, r.Evidence)
	}
	served.Store(0)
	for name, rebuild := range wrappers {
		var late func() error
		say := func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			late = func() error { _, err := rebuild(base, r); return err }
			return reply(501, "made up"), nil
		}
		var during error
		log := slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
			if during == nil {
				during = late()
			}
			return len(p), nil
		}), &slog.HandlerOptions{Level: slog.LevelDebug}))
		clientOf(t, server.URL, around(say), WithLogger(log)).Do(t.Context(), write(), nil)
		if after := late(); served.Load() > 0 || during == nil || after == nil {
			t.Errorf("%s: sent %d times, %v, %v", name, served.Load(), during, after)
		}
	}
}

// TestWrapperThatRebuilds proves that a write that is made anew, so that nobody can tell
// which it is, is not sent.
func TestWrapperThatRebuilds(t *testing.T) {
	var served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
	defer server.Close()
	for _, query := range []string{"", "?signature=1"} {
		rebuild := func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			again, err := http.NewRequest(r.Method, r.URL.String()+query, r.Body)
			if err != nil {
				return nil, err
			}
			return base.RoundTrip(again)
		}
		r := clientOf(t, server.URL, around(rebuild), WithMaxRetries(0)).Do(t.Context(), write(), nil)
		if check(t, r.err(), errRebuilt); r.Outcome != OutcomeNotSent || served.Load() > 0 {
			t.Errorf("%v, sent %d times", r.Outcome, served.Load())
		}
		call := write()
		call.Write = false
		if r := clientOf(t, server.URL, around(rebuild)).Do(t.Context(), call, nil); r.Failure != nil {
			t.Error(r.err())
		}
		served.Store(0)
	}
	sign := func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.URL.RawQuery = "signature=1"
		return base.RoundTrip(r)
	}
	if r := clientOf(t, server.URL, around(sign)).Do(t.Context(), write(), nil); r.Failure != nil || r.Evidence.BytesWritten < 50 {
		t.Errorf("signed: %v, %+v", r.err(), r.Evidence)
	}
	compress := func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), 1
		return base.RoundTrip(r)
	}
	call := write()
	call.Body = bytes.Repeat([]byte("{}"), 1000)
	if r := clientOf(t, server.URL, around(compress)).Do(t.Context(), call, nil); r.Failure != nil {
		t.Errorf("compressed: %v", r.err())
	}
}

// TestWrapperThatSendsNothing proves that a wrapper which does not call base has
// sent nothing, and that this is not claimed where it sent something else.
func TestWrapperThatSendsNothing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	defer server.Close()
	open := errors.New("the breaker is open")
	r := clientOf(t, server.URL, around(func(http.RoundTripper, *http.Request) (*http.Response, error) { return nil, open })).Do(t.Context(), write(), nil)
	check(t, r.err(), open)
	if r.Outcome != OutcomeNotSent || r.Evidence.BytesWritten != 0 {
		t.Errorf("%v, %+v", r.Outcome, r.Evidence)
	}
	for name, ctx := range map[string]func(*http.Request) context.Context{
		"its context": (*http.Request).Context, "no context": func(*http.Request) context.Context { return context.Background() },
	} {
		stranger := func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			token, err := http.NewRequestWithContext(ctx(r), http.MethodPost, server.URL+"/token", nil)
			if err != nil {
				return nil, err
			}
			if resp, err := base.RoundTrip(token); err == nil {
				resp.Body.Close()
			}
			return nil, open
		}
		r := clientOf(t, server.URL, around(stranger)).Do(t.Context(), write(), nil)
		if r.Outcome != OutcomeUnknown || r.Attempts != 1 {
			t.Errorf("with %s: %v after %d attempts", name, r.Outcome, r.Attempts)
		}
		// It does not stand in the way of the request that it was for.
		both := func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			if _, err := stranger(base, r); err != open {
				return nil, err
			}
			return base.RoundTrip(r)
		}
		if r := clientOf(t, server.URL, around(both)).Do(t.Context(), write(), nil); r.Failure != nil {
			t.Errorf("with %s: %v", name, r.err())
		}
	}
	made := func(http.RoundTripper, *http.Request) (*http.Response, error) { return reply(201, "made up"), nil }
	if r := clientOf(t, server.URL, around(made)).Do(t.Context(), write(), nil); r.Failure != nil || r.Outcome != OutcomeAccepted || string(r.Body) != "made up" {
		t.Errorf("a made-up response: %v, %v", r.Outcome, r.err())
	}
}

// authority issues certificates for 127.0.0.1.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pool        *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{certificate: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, pool: x509.NewCertPool()}
	issued := a.issue(t)
	a.certificate, a.key = issued.Leaf, issued.PrivateKey.(*ecdsa.PrivateKey)
	a.pool.AddCert(a.certificate)
	return a
}

func (a *authority) issue(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template, signer := a.certificate, key
	if a.key != nil {
		signer = a.key
		template = &x509.Certificate{
			SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// mutual is a server that wants a client certificate of an authority.
func mutual(t *testing.T, a *authority, change func(*tls.Config)) *httptest.Server {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{a.issue(t)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.pool}
	server.Config.ErrorLog = quiet
	if change != nil {
		change(server.TLS)
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// TestMutualTLS proves that an own authority and a client certificate work
// together with a wrapper, and what a refused certificate comes to.
func TestMutualTLS(t *testing.T) {
	a := newAuthority(t)
	server := mutual(t, a, nil)
	config := &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{a.issue(t)}, MinVersion: tls.VersionTLS10, NextProtos: []string{"h2"}}
	opts := []Option{WithTLSConfig(config), around(wrappers["replaces the context"])}
	config.RootCAs = nil // theirs is theirs
	for range 3 {
		r := clientOf(t, server.URL, opts...).Do(t.Context(), write(), nil)
		if e := r.Evidence; r.Failure != nil || e.BytesWritten < 50 || !e.RequestWritten {
			t.Errorf("%+v, %v", e, r.err())
		}
	}
	if config.MinVersion != tls.VersionTLS10 {
		t.Error("the caller's configuration was changed")
	}
	// Without a certificate, or with another authority's.
	for name, config := range map[string]*tls.Config{
		"none": {RootCAs: a.pool}, "another": {RootCAs: a.pool, Certificates: []tls.Certificate{newAuthority(t).issue(t)}},
	} {
		r := clientOf(t, server.URL, WithTLSConfig(config)).Do(t.Context(), write(), nil)
		// The refusal may come before the request is written, or after it.
		sent := r.Evidence.BytesWritten > 0
		if check(t, r.err(), ErrNoResponse); (r.Outcome == OutcomeUnknown) != sent || r.Outcome == OutcomeAccepted || r.Attempts != 1 {
			t.Errorf("%s, TLS 1.3: %v after %d attempts", name, r.Outcome, r.Attempts)
		}
		config.MaxVersion = tls.VersionTLS12
		r = clientOf(t, server.URL, WithTLSConfig(config)).Do(t.Context(), write(), nil)
		if check(t, r.err(), ErrNoResponse); r.Outcome != OutcomeNotSent {
			t.Errorf("%s, TLS 1.2: %v", name, r.Outcome)
		}
	}
	// An authority that is not trusted.
	if r := clientOf(t, server.URL).Do(t.Context(), write(), nil); r.Outcome != OutcomeNotSent || r.Attempts != 1 {
		t.Errorf("%v after %d attempts", r.Outcome, r.Attempts)
	}
	old := mutual(t, a, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 })
	config = &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{a.issue(t)}, MinVersion: tls.VersionTLS10}
	if r := clientOf(t, old.URL, WithTLSConfig(config)).Do(t.Context(), write(), nil); r.Failure == nil || r.Outcome != OutcomeNotSent {
		t.Errorf("TLS 1.1: %v, %v", r.Outcome, r.err())
	}
}

// TestProxyOption proves that a proxy of the caller's is used for https and http,
// that nil uses none, and that bytes are counted through any kind of it.
func TestProxyOption(t *testing.T) {
	a := newAuthority(t)
	target := mutual(t, a, func(c *tls.Config) { c.ClientAuth = tls.NoClientCert })
	var connects atomic.Int64
	tunnel := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connects.Add(1)
		if r.Method != http.MethodConnect {
			return
		}
		there, err := net.Dial("tcp", r.Host)
		if err != nil {
			t.Error(err)
			return
		}
		defer there.Close()
		here, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer here.Close()
		io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { io.Copy(there, buffered); there.Close() }()
		io.Copy(here, there)
	})
	plain, secure := httptest.NewServer(tunnel), httptest.NewUnstartedServer(tunnel)
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{a.issue(t)}}
	secure.StartTLS()
	defer plain.Close()
	defer secure.Close()
	trusted := WithTLSConfig(&tls.Config{RootCAs: a.pool})
	for _, test := range []struct {
		proxy string
		base  string
		want  int64
	}{{plain.URL, target.URL, 1}, {secure.URL, target.URL, 1}, {plain.URL, "http://127.0.0.1:1", 1}, {"", target.URL, 0}} {
		connects.Store(0)
		proxy := WithProxy(nil)
		if test.proxy != "" {
			at, err := url.Parse(test.proxy)
			if err != nil {
				t.Fatal(err)
			}
			proxy = WithProxy(http.ProxyURL(at))
		}
		r := clientOf(t, test.base, trusted, proxy).Do(t.Context(), write(), nil)
		if r.Failure != nil || connects.Load() != test.want || r.Evidence.BytesWritten < 50 {
			t.Errorf("%+v: %d requests at the proxy, %+v, %v", test, connects.Load(), r.Evidence, r.err())
		}
	}
}

// TestRefusedTransports proves that an option which could not work is refused.
func TestRefusedTransports(t *testing.T) {
	pass := func(base http.RoundTripper) http.RoundTripper { return base }
	for name, opts := range map[string][]Option{
		"no wrapper":      {WithTransport(nil)},
		"a wrapper's nil": {WithTransport(func(http.RoundTripper) http.RoundTripper { return nil })},
		"no TLS":          {WithTLSConfig(nil)},
		"old TLS":         {WithTLSConfig(&tls.Config{MaxVersion: tls.VersionTLS11})},
		"no idle time":    {WithConnectionReuse(0)},
		"wrapper twice":   {WithTransport(pass), WithHTTPClient(http.DefaultClient)},
		"TLS twice":       {WithHTTPClient(http.DefaultClient), WithTLSConfig(&tls.Config{})},
		"proxy twice":     {WithProxy(nil), WithHTTPClient(http.DefaultClient)},
		"reuse twice":     {WithConnectionReuse(1), WithHTTPClient(http.DefaultClient)},
	} {
		if _, err := New(kind(), "https://service.test", opts); !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := newClient(t, serve(status(200)))
	for name, o := range map[string]Option{
		"WithTransport": WithTransport(pass), "WithTLSConfig": WithTLSConfig(&tls.Config{}), "WithProxy": WithProxy(nil), "WithConnectionReuse": WithConnectionReuse(1),
		"WithHTTPClient": WithHTTPClient(http.DefaultClient), "WithRateLimit": WithRateLimit(1, 1), "WithInsecureHTTP": WithInsecureHTTP(),
	} {
		r := c.get(t.Context(), o)
		if check(t, r.err(), ErrInvalidArgument); !strings.Contains(Describe("", r.Failure), name) {
			t.Error(Describe("", r.Failure))
		}
	}
}

// TestPrematureResponse proves that a 2xx which comes before the request has left
// accepts nothing.
func TestPrematureResponse(t *testing.T) {
	for name, test := range map[string]struct {
		size    int
		outcome Outcome
	}{"whole": {10, OutcomeAccepted}, "a part": {64 << 20, OutcomeUnknown}} {
		hold := make(chan struct{})
		base := wire(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", hold)
		call := write()
		call.Body = bytes.Repeat([]byte(" "), test.size)
		for _, opts := range [][]Option{nil, {around(wrappers["clones"])}} {
			r := clientOf(t, base, opts...).Do(t.Context(), call, nil)
			if r.Outcome != test.outcome || r.Attempts != 1 {
				t.Errorf("%s: %v, %+v, %v", name, r.Outcome, r.Evidence, r.err())
			}
			if test.outcome == OutcomeUnknown {
				check(t, r.err(), ErrBadResponse)
			}
		}
		close(hold)
	}
}

// TestReadsSurviveGoAway proves that a read goes on where a server ends HTTP/2
// connections as a matter of course, which net/http mends if it may.
func TestReadsSurviveGoAway(t *testing.T) {
	network := roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.GetBody == nil {
			t.Fatal("net/http may not send the body again")
		}
		for range 2 {
			body, err := r.GetBody()
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(body); string(got) != "{}" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		}
		return reply(200, ""), nil
	})
	call := write()
	call.Write = false
	newClient(t, network).Do(t.Context(), call, nil)
}
