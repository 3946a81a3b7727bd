package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestHandshakeSaysWhatWasRefused proves that a failed handshake says which side
// refused, and what.
func TestHandshakeSaysWhatWasRefused(t *testing.T) {
	start := func(config *tls.Config) *httptest.Server {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog, server.TLS = log.New(io.Discard, "", 0), config
		server.StartTLS()
		t.Cleanup(server.Close)
		return server
	}
	server := start(nil)
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	picky := start(&tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12})
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
		"the certificate is for another host name":                                  {"https://localhost" + port(server.URL), &tls.Config{RootCAs: trusted}},
		"the certificate has expired, or is not valid yet by this machine's clock":  {server.URL, &tls.Config{RootCAs: trusted, Time: later}},
		"the port speaks http and not https":                                        {"https://127.0.0.1" + port(plain.URL), nil},
		"the port does not speak TLS":                                               {"https://127.0.0.1" + port(other.Addr().String()), nil},
		"the other side refused the TLS handshake: ":                                {picky.URL, &tls.Config{RootCAs: trusted}},
		"the tls.Config's own check refused the connection, its error is the Cause": {server.URL, &tls.Config{RootCAs: trusted, VerifyConnection: func(tls.ConnectionState) error { return pinned }}},
		"the tls.Config's own check refused": {server.URL, &tls.Config{RootCAs: trusted, VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error {
			return &net.DNSError{Name: "ocsp.canary.test", IsTemporary: true} // of what the check asked, and not of the service
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
		if text := Describe("test", r.Failure); !strings.HasPrefix(text, "test: write: no response: "+want) || r.Outcome != OutcomeNotSent || r.Attempts != 1 {
			t.Errorf("%s after %d attempts (%v)\nwant %s", text, r.Attempts, r.Outcome, want)
		}
		if cause := r.Failure.Cause(); cause == nil || r.Failure.Retryable() || errors.Is(cause, pinned) && cause != pinned {
			t.Errorf("%s: caused by %v, retryable %v", want, cause, r.Failure.Retryable())
		}
	}
}

// TestCause proves that the error of the caller's own code can be read, and is not
// printed.
func TestCause(t *testing.T) {
	cause := errors.New("dial canary.internal:443")
	for says, options := range map[string][]Option{
		"its own error is the Cause": {WithHTTPClient(&http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, cause })})},
		"the token source failed":    {WithTokenSource(TokenFunc(func(context.Context) (string, error) { return "", cause }))},
		"refused to send":            {WithLimiter(limiterFunc(func(context.Context) error { return cause }))},
	} {
		c, err := New(Service{Name: "test"}, "https://service.test", options)
		if err != nil {
			t.Fatal(err)
		}
		f := c.Do(t.Context(), write(), nil).Failure
		if f.Cause() != cause || !errors.Is(f.Err, cause) {
			t.Errorf("%s: caused by %v", says, f.Cause())
		}
		var text strings.Builder
		text.WriteString(Describe("test", f))
		for _, verb := range []string{"%v", "%+v", "%#v", "%w", "%p", "%!"} {
			text.WriteString(fmt.Sprintf(verb, f) + fmt.Sprintf(verb, *f))
		}
		if strings.Contains(text.String(), "canary") || !strings.Contains(text.String(), says) {
			t.Error(text.String())
		}
	}
	// What a wrapper met before it called base is its own, also if it is an error of the network.
	for _, cause := range []error{cause, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}} {
		wrap := func(http.RoundTripper) http.RoundTripper {
			return roundTripper(func(*http.Request) (*http.Response, error) { return nil, cause })
		}
		c, err := New(Service{Name: "test"}, "https://service.test", []Option{WithTransport(wrap)})
		if err != nil {
			t.Fatal(err)
		}
		r := c.Do(t.Context(), write(), nil)
		if text := Describe("test", r.Failure); !strings.Contains(text, transportFailed.msg) || r.Failure.Cause() != cause || r.Outcome != OutcomeNotSent {
			t.Errorf("%s, caused by %v: %v", text, r.Failure.Cause(), r.Outcome)
		}
	}
	// So is the error of a function of the tls.Config that is not a check.
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog, server.TLS = log.New(io.Discard, "", 0), &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	c, err := New(Service{Name: "test"}, server.URL, []Option{WithTLSConfig(&tls.Config{InsecureSkipVerify: true,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return nil, cause }})})
	if err != nil {
		t.Fatal(err)
	}
	if f := c.Do(t.Context(), write(), nil).Failure; !strings.Contains(Describe("test", f), transportFailed.msg) || f.Cause() != cause || !f.Retryable() {
		t.Errorf("%s, caused by %v", Describe("test", f), f.Cause())
	}
	for cause, says := range map[error]string{
		x509.CertificateInvalidError{Reason: x509.Expired}:                           "has expired",
		x509.CertificateInvalidError{Reason: x509.TooManyIntermediates}:              "was refused by this side",
		&tls.CertificateVerificationError{Err: errors.New("canary")}:                 "was refused by this side",
		tls.RecordHeaderError{RecordHeader: [5]byte([]byte("SSH-2")), Msg: "canary"}: "does not speak TLS",
		cause: "",
	} {
		if got := handshakeRefusal(cause); !strings.HasSuffix(strings.TrimSuffix(got, ", or is not valid yet by this machine's clock"), says) || (got == "") != (says == "") {
			t.Errorf("%T: %q", cause, got)
		}
	}
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	c = newClient(t, roundTripper(func(*http.Request) (*http.Response, error) { return nil, refused }), WithMaxRetries(0))
	if f := c.get(t.Context()).Failure; f.Cause() != refused || !strings.Contains(Describe("test", f), ": "+syscall.ECONNREFUSED.Error()) {
		t.Error(Describe("test", f), f.Cause())
	}
	if (&Failure{}).Cause() != nil || (&Failure{Err: Invalid("x")}).Cause() != nil {
		t.Error("an error without a cause has one")
	}
	// The last error of a chain may be the library's own.
	call, unusable := read(), Unusable("x")
	call.Decode = func([]byte) error { return unusable }
	if f := newClient(t, serve(status(200)), WithMaxRetries(0)).Do(t.Context(), call, nil).Failure; f.Cause() != unusable {
		t.Errorf("%v is caused by %v", f.Err, f.Cause())
	}
}

// TestBaseURLWithTheEndpoint proves that a base URL with the endpoint's own path is
// refused, and one that merely resembles it is not.
func TestBaseURLWithTheEndpoint(t *testing.T) {
	for _, test := range []struct {
		route, base string
		refused     bool
	}{
		{"/bins/multiple", "https://service.test/bins/multiple", true}, {"/bins/multiple", "https://service.test/gateway/bins/multiple/", true},
		{"/bins/multiple", "https://service.test/bins", false}, {"/bins/multiple", "https://service.test/multiple", false},
		{"/bins/multiple", "https://service.test", false}, {"", "https://service.test/bins/multiple", false},
		{"/v1/{account_id}/refunds", "https://service.test/v1/acct_1/refunds", true},
		{"/v1/{account_id}/refunds", "https://service.test/v1/%7Baccount_id%7D/refunds/", true},
		{"/v1/{account_id}/refunds", "https://service.test/refunds", false},
	} {
		_, err := New(Service{Name: "test", Route: test.route}, test.base, nil)
		if refused := errors.Is(err, ErrInvalidArgument); refused != test.refused || refused && !strings.Contains(err.Error(), "leave "+test.route+" off") {
			t.Errorf("%s: %v", test.base, err)
		}
	}
}

// TestTokenMistakes proves that the common mistakes are called by their names.
func TestTokenMistakes(t *testing.T) {
	for token, want := range map[string]string{
		"Bearer canary": `begins with "Bearer "`, "bearer canary": `begins with "Bearer "`, "canary\n": "ends in a line break",
		"canary\r\n": "ends in a line break", "": "empty", "can ary": "visible ASCII", "Bearer ": `begins with "Bearer "`,
		"Bearer": `begins with "Bearer "`, "BEARER\tcanary": `begins with "Bearer "`, " Bearer canary": `begins with "Bearer "`, "bearer\n": `begins with "Bearer "`,
		"Bearer\u00a0canary": `begins with "Bearer "`,
	} {
		if _, err := newCredential(StaticToken(token)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %v", token, err)
		}
	}
	if _, err := newCredential(StaticToken("bearer_1")); err != nil {
		t.Error(err)
	}
}
