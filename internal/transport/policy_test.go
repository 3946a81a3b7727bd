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

	"golang.org/x/time/rate"
)

// Every status has a scope, on purpose: a failure beyond OfRequest delays all requests after
// it. An Error that was made by hand has the same condition and scope as a real one.
func TestEveryStatus(t *testing.T) {
	own := map[int]Scope{
		401: OfSetup, 407: OfSetup, 501: OfSetup, 505: OfSetup,
		301: OfSetup, 302: OfSetup, 303: OfSetup, 307: OfSetup, 308: OfSetup,
		403: OfAccount, 404: OfAccount, 410: OfAccount,
		408: OfOutage, 421: OfOutage, 425: OfOutage, 429: OfOutage,
	}
	for code := 100; code < 700; code++ {
		want, known := own[code]
		switch {
		case known:
		case code/100 == 2, code/100 == 4 && http.StatusText(code) != "": // an RFC registers it
			want = OfRequest
		default:
			want = OfOutage
		}
		r := newClient(t, serve(status(code)), WithMaxRetries(0)).Do(t.Context(), write(), nil)
		byHand := &Failure{StatusCode: code}
		if code/100 == 2 {
			if r.Failure != nil || Unwrap(byHand) != nil || byHand.Outcome() != OutcomeUnknown {
				t.Errorf("%d: %v, made by hand: %v, %v", code, r.err(), Unwrap(byHand), byHand.Outcome())
			}
			continue
		}
		if r.Failure == nil || Unwrap(byHand) == nil || !errors.Is(r.err(), Unwrap(byHand)) {
			t.Fatalf("%d: %v, made by hand: %v", code, r.err(), Unwrap(byHand))
		}
		if got, also := r.Failure.Scope(), byHand.Scope(); got != want || also != want {
			t.Errorf("%d: scope %d, made by hand %d, want %d", code, got, also, want)
		}
	}
	if err := Unwrap(&Failure{StatusCode: 404, Err: io.EOF}); err != io.EOF || Unwrap(&Failure{}) != nil {
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
		return WithTokenSource(TokenFunc(func(context.Context) (string, error) { return token, err }))
	}
	for name, test := range map[string]struct {
		ctx  context.Context
		opts []Option
		want Scope
	}{
		"the caller ended it":     {ended, nil, OfRequest},
		"a refused option":        {nil, []Option{WithMaxRetries(-1)}, OfRequest},
		"the limiter":             {nil, []Option{WithLimiter(rate.NewLimiter(1, 0))}, OfOutage},
		"the token source fails":  {nil, []Option{source("", io.EOF)}, OfOutage},
		"an unusable token":       {nil, []Option{source("", nil)}, OfSetup},
		"unknown host name":       {nil, fails(&net.DNSError{IsNotFound: true}), OfSetup},
		"host name lookup failed": {nil, fails(&net.DNSError{IsTemporary: true}), OfOutage},
		"connection refused":      {nil, fails(syscall.ECONNREFUSED), OfOutage},
		"an untrusted connection": {nil, fails(x509.UnknownAuthorityError{}), OfSetup},
		"a proxy forbids":         {nil, fails(proxyRefusal(403)), OfSetup},
		"a proxy fails":           {nil, fails(proxyRefusal(502)), OfOutage},
		"connection reset":        {nil, []Option{WithHTTPClient(client(serve(func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNRESET })))}, OfOutage},
		"a page":                  {nil, says("<html>"), OfOutage},
		"an error object":         {nil, says(`{"error":{"code":"down"}}`), OfOutage},
		"the receipt check":       {nil, append(says(""), WithWriteCheck(func(*Result) error { return errors.New("no") })), OfOutage},
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
		if r := c.Do(ctx, write(), perCall); r.Failure == nil || r.Failure.Scope() != test.want {
			t.Errorf("%s: %v, want scope %d", name, r.Failure, test.want)
		} else if kept := (&Failure{Err: WithOutcome(r.Failure.Err, OutcomeUnknown)}); kept.Scope() != test.want {
			t.Errorf("%s, with another outcome: scope %d, want %d", name, kept.Scope(), test.want)
		}
	}
}
