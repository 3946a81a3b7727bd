package transport

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/carddata/carddata-go/internal/auth"
	"github.com/carddata/carddata-go/internal/fault"
	"golang.org/x/time/rate"
)

// Every failure has a scope, on purpose: one beyond OfRequest delays all requests after it. internal/fault has those of
// all statuses.
func TestScopeOfFailures(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	fails := func(err error) []Option {
		return []Option{through(&http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, err }}), WithMaxRetries(0)}
	}
	accepts := func(body string) []Option { return []Option{through(serve(says(200, body)))} }
	source := func(token string, err error) Option {
		return WithTokenSource(auth.Func(func(context.Context) (string, error) { return token, err }))
	}
	for name, test := range map[string]struct {
		ctx  context.Context
		opts []Option
		want fault.Scope
	}{
		"the caller ended it":     {ended, nil, fault.OfRequest},
		"a refused option":        {nil, []Option{WithMaxRetries(-1)}, fault.OfRequest},
		"the limiter":             {nil, []Option{WithLimiter(rate.NewLimiter(1, 0))}, fault.OfOutage},
		"the token source fails":  {nil, []Option{source("", io.EOF)}, fault.OfOutage},
		"an unusable token":       {nil, []Option{source("", nil)}, fault.OfSetup},
		"unknown host name":       {nil, fails(&net.DNSError{IsNotFound: true}), fault.OfSetup},
		"host name lookup failed": {nil, fails(&net.DNSError{IsTemporary: true}), fault.OfOutage},
		"connection refused":      {nil, fails(syscall.ECONNREFUSED), fault.OfOutage},
		"an untrusted connection": {nil, fails(x509.UnknownAuthorityError{}), fault.OfSetup},
		"a proxy forbids":         {nil, fails(fault.ProxyRefusal(403)), fault.OfSetup},
		"a proxy fails":           {nil, fails(fault.ProxyRefusal(502)), fault.OfOutage},
		"a proxy times out":       {nil, fails(fault.ProxyRefusal(408)), fault.OfOutage},
		"a proxy is busy":         {nil, fails(fault.ProxyRefusal(429)), fault.OfOutage},
		"a status":                {nil, []Option{through(serve(status(404)))}, fault.OfAccount},
		"connection reset":        {nil, []Option{through(serve(func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNRESET }))}, fault.OfOutage},
		"a page":                  {nil, accepts("<html>"), fault.OfOutage},
		"an error object":         {nil, accepts(`{"error":{"code":"down"}}`), fault.OfOutage},
		"the receipt check":       {nil, append(accepts(""), WithWriteCheck(func(*Result) error { return errors.New("no") })), fault.OfOutage},
	} {
		opts := append([]Option{WithMaxRetries(0)}, test.opts...)
		ctx := test.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		var perCall []Option
		if name == "a refused option" {
			opts, perCall = nil, opts
		}
		c := newClient(t, nil, opts...)
		if r := c.do(ctx, write(), perCall...); r.Failure == nil || r.Failure.Scope() != test.want {
			t.Errorf("%s: %v, want scope %d", name, r.Failure, test.want)
		}
	}
}
