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

// Every status has a scope, on purpose: a failure beyond OfRequest delays all requests after
// it. An Error that was made by hand has the same condition and scope as a real one.
func TestEveryStatus(t *testing.T) {
	own := map[int]fault.Scope{
		401: fault.OfSetup, 407: fault.OfSetup, 501: fault.OfSetup, 505: fault.OfSetup,
		301: fault.OfSetup, 302: fault.OfSetup, 303: fault.OfSetup, 307: fault.OfSetup, 308: fault.OfSetup,
		403: fault.OfAccount, 404: fault.OfAccount, 410: fault.OfAccount,
		408: fault.OfOutage, 421: fault.OfOutage, 425: fault.OfOutage, 429: fault.OfOutage,
	}
	for code := 100; code < 700; code++ {
		want, known := own[code]
		switch {
		case known:
		case code/100 == 2, code/100 == 4 && http.StatusText(code) != "": // an RFC registers it
			want = fault.OfRequest
		default:
			want = fault.OfOutage
		}
		r := newClient(t, serve(status(code)), WithMaxRetries(0)).Do(t.Context(), write(), nil)
		byHand := &fault.Failure{StatusCode: code}
		if code/100 == 2 {
			if r.Failure != nil || fault.Unwrap(byHand) != nil {
				t.Errorf("%d: %v, made by hand: %v", code, r.err(), fault.Unwrap(byHand))
			}
			continue
		}
		if r.Failure == nil || fault.Unwrap(byHand) == nil || !errors.Is(r.err(), fault.Unwrap(byHand)) {
			t.Fatalf("%d: %v, made by hand: %v", code, r.err(), fault.Unwrap(byHand))
		}
		if got, also := r.Failure.Scope(), byHand.Scope(); got != want || also != want {
			t.Errorf("%d: scope %d, made by hand %d, want %d", code, got, also, want)
		}
	}
	if err := fault.Unwrap(&fault.Failure{StatusCode: 404, Err: io.EOF}); err != io.EOF || fault.Unwrap(&fault.Failure{}) != nil {
		t.Error(err)
	}
}

func TestScopeOfOtherFailures(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	fails := func(err error) []Option {
		return []Option{WithHTTPClient(client(&http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, err }})), WithMaxRetries(0)}
	}
	says := func(body string, header ...string) []Option {
		return []Option{WithHTTPClient(client(serve(func(*http.Request) (*http.Response, error) { return reply(200, body, header...), nil })))}
	}
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
		"connection reset":        {nil, []Option{WithHTTPClient(client(serve(func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNRESET })))}, fault.OfOutage},
		"a page":                  {nil, says("<html>"), fault.OfOutage},
		"an error object":         {nil, says(`{"error":{"code":"down"}}`), fault.OfOutage},
		"the receipt check":       {nil, append(says(""), WithWriteCheck(func(*Result) error { return errors.New("no") })), fault.OfOutage},
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
