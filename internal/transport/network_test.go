package transport

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
)

func clientOf(t *testing.T, base string, opts ...Option) *Client {
	t.Helper()
	c, err := New(testService(), base, append([]Option{WithRetryWait(0, 0)}, opts...))
	if err != nil {
		t.Fatal(err)
	}
	return c
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

// mutual starts a server that requires a client certificate of an authority.
func mutual(t *testing.T, a *authority, change func(*httptest.Server)) *httptest.Server {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{a.issue(t)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.pool}
	server.Config.ErrorLog = quiet
	if change != nil {
		change(server)
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// An authority and a client certificate of the caller work together with a wrapper. A refused
// certificate is an error.
func TestMutualTLS(t *testing.T) {
	a := newAuthority(t)
	server := mutual(t, a, nil)
	config := &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{a.issue(t)}, MinVersion: tls.VersionTLS10, NextProtos: []string{"h2"}}
	opts := []Option{WithTLSConfig(config), around(remade("clone with a later context"))}
	config.RootCAs = nil // no effect on the option
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
		if check(t, r.err(), fault.ErrNoResponse); (r.Outcome == fault.OutcomeUnknown) != sent || r.Outcome == fault.OutcomeAccepted || r.Attempts != 1 {
			t.Errorf("%s, TLS 1.3: %v after %d attempts", name, r.Outcome, r.Attempts)
		}
		config.MaxVersion = tls.VersionTLS12
		r = clientOf(t, server.URL, WithTLSConfig(config)).Do(t.Context(), write(), nil)
		if check(t, r.err(), fault.ErrNoResponse); r.Outcome != fault.OutcomeNotSent {
			t.Errorf("%s, TLS 1.2: %v", name, r.Outcome)
		}
	}
	old := mutual(t, a, func(s *httptest.Server) { s.TLS.MinVersion, s.TLS.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 })
	config = &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{a.issue(t)}, MinVersion: tls.VersionTLS10}
	if r := clientOf(t, old.URL, WithTLSConfig(config)).Do(t.Context(), write(), nil); r.Failure == nil || r.Outcome != fault.OutcomeNotSent {
		t.Errorf("TLS 1.1: %v, %v", r.Outcome, r.err())
	}
}

// If the caller's tls.Config has a certificate or a check of certificates, each connection makes
// a full handshake: since the last one, a pin may have been revoked, or the client certificate
// renewed. Otherwise a connection resumes the session of the one before.
func TestSessionsAreResumed(t *testing.T) {
	a := newAuthority(t)
	server := mutual(t, a, func(s *httptest.Server) {
		s.TLS.ClientAuth = tls.RequestClientCert
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			w.Header().Set("X-Request-Id", fmt.Sprint(r.TLS.DidResume))
		})
	})
	own := a.issue(t)
	check := func([][]byte, [][]*x509.Certificate) error { return nil }
	for name, test := range map[string]struct {
		config  *tls.Config
		resumes bool
	}{
		"no opinion":                           {&tls.Config{}, true},
		"a check that also runs on resumption": {&tls.Config{VerifyConnection: func(tls.ConnectionState) error { return nil }}, true},
		"a check":                              {&tls.Config{VerifyPeerCertificate: check}, false},
		"a certificate":                        {&tls.Config{Certificates: []tls.Certificate{own}}, false},
		"a renewed certificate":                {&tls.Config{GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }}, false},
		"a cache of the caller's":              {&tls.Config{VerifyPeerCertificate: check, ClientSessionCache: tls.NewLRUClientSessionCache(1)}, true},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			test.config.RootCAs, test.config.MaxVersion = a.pool, version
			c := clientOf(t, server.URL, WithTLSConfig(test.config), WithMaxRetries(0))
			c.get(t.Context())
			if r := c.get(t.Context()); r.Failure != nil || (r.RequestID == "true") != test.resumes {
				t.Errorf("%s, version %x: resumed %s, %v", name, version, r.RequestID, r.err())
			}
		}
	}
}

// A 2xx that comes before the whole request has left accepts nothing.
func TestPrematureResponse(t *testing.T) {
	for size, want := range map[int]fault.Outcome{10: fault.OutcomeAccepted, 16 << 20: fault.OutcomeUnknown} {
		for _, opts := range [][]Option{nil, {around(passesOn)}} {
			synctest.Test(t, func(t *testing.T) {
				call := write()
				call.Body = bytes.Repeat([]byte(" "), size)
				r := (&peer{early: true}).client(t, opts...).Do(t.Context(), call, nil)
				if r.Outcome != want || r.Attempts != 1 || want == fault.OutcomeUnknown && !errors.Is(r.err(), fault.ErrBadResponse) {
					t.Errorf("%d bytes: %v, %+v, %v", size, r.Outcome, r.Evidence, r.err())
				}
				time.Sleep(2 * time.Second)
			})
		}
	}
}

// The header of a response is limited, so that many responses at once cost little memory.
func TestHeaderIsBounded(t *testing.T) {
	for size, want := range map[int]error{32 << 10: nil, 128 << 10: fault.ErrBadResponse} {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{handle: func(c net.Conn, _ *http.Request) {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", size)+"\r\nContent-Length: 0\r\n\r\n")
			}}
			if r := p.client(t, WithMaxRetries(0)).get(t.Context()); !errors.Is(r.err(), want) || want == nil && r.Failure != nil {
				t.Errorf("%d bytes: %v", size, r.err())
			}
		})
	}
}

// The error of a failed handshake names the side that refused it, and the reason.
func TestHandshakeSaysWhatWasRefused(t *testing.T) {
	a := newAuthority(t)
	server := mutual(t, a, func(s *httptest.Server) { s.TLS.ClientAuth = tls.NoClientCert })
	picky := mutual(t, a, func(s *httptest.Server) { s.TLS.MaxVersion = tls.VersionTLS12 })
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	go func() {
		for {
			c, err := other.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "220 mail.example ESMTP\r\n")
			c.Close()
		}
	}()
	port := func(address string) string { return address[strings.LastIndex(address, ":"):] }
	pinned := errors.New("pin of canary.test")
	later := func() time.Time { return time.Now().AddDate(500, 0, 0) }
	for want, test := range map[string]struct {
		base   string
		config *tls.Config
	}{
		"the certificate is not from an authority that this side trusts":            {server.URL, &tls.Config{RootCAs: x509.NewCertPool()}},
		"the certificate is for another host name":                                  {"https://localhost" + port(server.URL), &tls.Config{RootCAs: a.pool}},
		"the certificate has expired, or is not valid yet by this machine's clock":  {server.URL, &tls.Config{RootCAs: a.pool, Time: later}},
		"the port speaks http and not https":                                        {"https://127.0.0.1" + port(plain.URL), nil},
		"the port does not speak TLS":                                               {"https://127.0.0.1" + port(other.Addr().String()), nil},
		"the other side refused the TLS handshake: ":                                {picky.URL, &tls.Config{RootCAs: a.pool}},
		"the tls.Config's own check refused the connection, its error is the Cause": {server.URL, &tls.Config{RootCAs: a.pool, VerifyConnection: func(tls.ConnectionState) error { return pinned }}},
		"the tls.Config's own check refused": {server.URL, &tls.Config{RootCAs: a.pool, VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error {
			return &net.DNSError{Name: "ocsp.canary.test", IsTemporary: true} // the check looked up this host
		}}},
	} {
		options := []Option{}
		if test.config != nil {
			options = append(options, WithTLSConfig(test.config))
		}
		c, err := New(Service{Name: "test"}, test.base, options)
		if err != nil {
			t.Fatal(err)
		}
		call := write()
		r := c.Do(t.Context(), call, nil)
		if text := fault.Describe("test", r.Failure); !strings.HasPrefix(text, "test: write: no response: "+want) || r.Outcome != fault.OutcomeNotSent || r.Attempts != 1 {
			t.Errorf("%s after %d attempts (%v)\nwant %s", text, r.Attempts, r.Outcome, want)
		}
		if cause := r.Failure.Cause(); cause == nil || r.Failure.Retryable() || errors.Is(cause, pinned) && cause != pinned {
			t.Errorf("%s: caused by %v, retryable %v", want, cause, r.Failure.Retryable())
		}
	}
}
