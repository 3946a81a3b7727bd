package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/auth"
	"github.com/carddata/carddata-go/internal/fault"
	"golang.org/x/time/rate"
)

func TestRefusedOptions(t *testing.T) {
	refused := map[string]Option{
		"nil": nil, "no http.Client": WithHTTPClient(nil), "no source": WithTokenSource(nil), "no function": WithTokenSource(auth.Func(nil)), "no fetch": WithTokenSource(auth.Cached(nil)),
		"negative retries": WithMaxRetries(-1), "negative wait": WithRetryWait(-1, 1), "limit below base": WithRetryWait(2, 1),
		"negative timeout": WithAttemptTimeout(-1), "negative interval": WithWait(-1, 0), "negative limit": WithWait(0, -1),
		"no rate": WithRateLimit(0, 1), "negative rate": WithRateLimit(-1, 1), "NaN": WithRateLimit(rate.Limit(math.NaN()), 1), "no burst": WithRateLimit(1, 0),
		"user agent of two lines": WithUserAgent("secret\r\nX: y"), "user agent not ASCII": WithUserAgent("secrét"),
	}
	for _, name := range []string{"", " ", "a b", "a:b", "a\r\n", "é", "(a)", "a/b", "secret\x00"} {
		refused[fmt.Sprintf("header name %q", name)] = WithHeader(name, "v")
	}
	for _, value := range []string{"", "secret\n", "secret\r\nX: y", "secret\x00", "secret\x7f", "sécret", "secret\xff"} {
		refused[fmt.Sprintf("header value %q", value)] = WithHeader("X-A", value)
	}
	for _, name := range []string{
		"Accept-Encoding", "Connection", "Content-Length", "Content-Type", "Host", "If-Range", "Range", "Trailer", "Transfer-Encoding", "User-Agent", "X-Merchant-Id",
	} {
		for _, spelled := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			refused["header "+spelled] = WithHeader(spelled, "v")
		}
	}
	pass := func(base http.RoundTripper) http.RoundTripper { return base }
	refused["no wrapper"], refused["no TLS"] = WithTransport(nil), WithTLSConfig(nil)
	refused["old TLS"] = WithTLSConfig(&tls.Config{MaxVersion: tls.VersionTLS11})
	c := newClient(t, serve(status(200)))
	for name, opts := range map[string][]Option{
		"a wrapper's nil": {WithTransport(func(http.RoundTripper) http.RoundTripper { return nil })},
		"wrapper twice":   {WithTransport(pass), WithHTTPClient(http.DefaultClient)},
		"TLS twice":       {WithHTTPClient(http.DefaultClient), WithTLSConfig(&tls.Config{})},
		"proxy twice":     {WithProxy(nil), WithHTTPClient(http.DefaultClient)},
	} {
		if _, err := New(testService(), "https://service.test", opts); !errors.Is(err, fault.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, option := range refused {
		_, atClient := New(testService(), "https://service.test", []Option{option})
		atCall := c.get(t.Context(), option)
		if !errors.Is(atClient, fault.ErrInvalidArgument) || !errors.Is(atCall.err(), fault.ErrInvalidArgument) {
			t.Errorf("%s: %v of a client, %v of a call", name, atClient, atCall.err())
			continue
		}
		for _, text := range []string{fmt.Sprint(atClient), fault.Describe("", atCall.Failure)} {
			if strings.Contains(text, "secret") {
				t.Errorf("%s is quoted: %s", name, text)
			}
		}
		if atCall.Attempts != 0 || atCall.Outcome != fault.OutcomeNotSent {
			t.Errorf("%s: %d attempts, %v", name, atCall.Attempts, atCall.Outcome)
		}
	}
}

// The options of a call win over those of the client, for this call only.
func TestCallOptionsWin(t *testing.T) {
	network := serve(status(200))
	c := newClient(t, network, WithHeader("X-A", "client"), WithHeader("X-B", "client"), WithTokenSource(auth.Static("client")), WithUserAgent("client/1"))
	c.get(t.Context(), WithHeader("x-a", "first"), WithHeader("x-a", "call"), WithTokenSource(auth.Static("call")), WithUserAgent("call/1"), WithLogger(nil))
	c.get(t.Context())
	own := "carddata-go/devel " + runtime.Version()
	for i, want := range []string{"[call] [client] [Bearer call] [call/1 " + own + "]", "[client] [client] [Bearer client] [client/1 " + own + "]"} {
		if h := network.headers[i]; fmt.Sprint(h["X-A"], h["X-B"], h["Authorization"], h["User-Agent"]) != want {
			t.Errorf("call %d: %v", i, h)
		}
	}
}

// Clients and calls that are given the same option share its limit.
func TestRateLimitIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, limit, network := time.Now(), WithRateLimit(1, 1), serve(status(200))
		newClient(t, network, limit).get(t.Context())
		newClient(t, network, limit).get(t.Context())
		newClient(t, network).get(t.Context(), limit)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("three requests took %v", took)
		}
	})
}

// A token source and an Authorization header together are refused.
func TestTwoCredentials(t *testing.T) {
	token, header := WithTokenSource(auth.Static("t")), WithHeader("authorization", "Basic x")
	if _, err := New(testService(), "https://service.test", []Option{token, header}); !errors.Is(err, fault.ErrInvalidArgument) {
		t.Error(err)
	}
	check(t, newClient(t, serve(status(200)), token).get(t.Context(), header).err(), fault.ErrInvalidArgument)
	network := serve(status(200))
	if r := newClient(t, network, header).get(t.Context()); r.Failure != nil || network.headers[0].Get("Authorization") != "Basic x" {
		t.Errorf("%v, %v", network.headers, r.err())
	}
}

// The shorter of the http.Client's timeout and the attempt timeout bounds each attempt.
func TestHTTPClientTimeout(t *testing.T) {
	for _, test := range []struct{ client, option, want time.Duration }{
		{3 * time.Second, 10 * time.Second, 3 * time.Second}, {time.Minute, 10 * time.Second, 10 * time.Second},
		{0, 10 * time.Second, 10 * time.Second}, {3 * time.Second, 0, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			network := serve(stall)
			hc := &http.Client{Transport: network, Timeout: test.client}
			r := newClient(t, nil, WithHTTPClient(hc), WithAttemptTimeout(test.option), WithMaxRetries(0)).get(t.Context())
			check(t, r.err(), fault.ErrTimeout)
			if took := time.Since(network.began); took != test.want {
				t.Errorf("%+v: took %v", test, took)
			}
		})
	}
}
