package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/auth"
	"github.com/carddata/carddata-go/internal/fault"
)

func TestBaseURL(t *testing.T) {
	for base, want := range map[string]string{
		"https://service.test":                "https://service.test",
		"https://service.test/":               "https://service.test",
		"https://service.test///":             "https://service.test",
		"https://service.test/gateway":        "https://service.test/gateway",
		"https://service.test/gateway/v2/":    "https://service.test/gateway/v2",
		"https://service.test/a%2Fb/":         "https://service.test/a%2Fb",
		"https://service.test/a b":            "https://service.test/a%20b",
		"https://service.test:8443/x":         "https://service.test:8443/x",
		"HTTPS://service.test":                "https://service.test",
		"https://[2001:db8::1]:8443":          "https://[2001:db8::1]:8443",
		"http://localhost:8080":               "http://localhost:8080",
		"http://127.0.0.1:8080/x/":            "http://127.0.0.1:8080/x",
		"http://127.1.2.3":                    "http://127.1.2.3",
		"http://[::1]:8080":                   "http://[::1]:8080",
		"http://[::ffff:127.0.0.1]":           "http://[::ffff:127.0.0.1]",
		"https://service.test/...":            "https://service.test/...",
		"https://service.test/.well-known":    "https://service.test/.well-known",
		"https://service.test/a//b":           "https://service.test/a//b",
		"https://service.test/%3Fnot-a-query": "https://service.test/%3Fnot-a-query",
	} {
		if got, err := parseBase(base, "", false); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", base, got, err, want)
		}
	}
	for _, host := range []string{"service.test", "10.0.0.1", "[2001:db8::1]", "0.0.0.0", "localhost.service.test", "127.0.0.1.service.test"} {
		base := "http://" + host + "/x"
		if _, err := parseBase(base, "", false); !errors.Is(err, fault.ErrInvalidArgument) {
			t.Errorf("%s: %v", base, err)
		}
		if got, err := parseBase(base, "", true); got != base || err != nil {
			t.Errorf("%s where http is allowed: %q, %v", base, got, err)
		}
	}
	for _, base := range []string{
		"", " ", "/", "service.test", "//service.test", "https:", "https://", "https:///x", "https:service.test", "https://:443",
		"ftp://service.test", "file:///etc/passwd", "httpss://service.test", "mailto:secret@service.test", "unix:///secret",
		"https://secret@service.test", "https://secret:secret@service.test", "https://@service.test", "https://:secret@service.test",
		"https://service.test?secret", "https://service.test/?", "https://service.test/x?a=secret",
		"https://service.test#secret", "https://service.test/#", "https://service.test/x#",
		"https://service.test/.", "https://service.test/..", "https://service.test/a/../b", "https://service.test/a/./b",
		"https://service.test/%2e%2e/b", "https://service.test/a/%2E", "https://service.test/.%2e/b",
		"https://service.test/\r\nsecret", "https://service.test/\x00", "https://service.test/\x7f", "https://service.test:secret",
		"https://ser vice.test", "https://[::1", "https://service.test/%zzsecret", " https://service.test",
	} {
		_, err := parseBase(base, "", true)
		if !errors.Is(err, fault.ErrInvalidArgument) {
			t.Errorf("%q: %v", base, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q is quoted: %v", base, err)
		}
	}
}

// FuzzBaseURL looks for a base URL that sends a request to another address than it names.
func FuzzBaseURL(f *testing.F) {
	for _, base := range []string{"https://service.test/x/", "http://[::1]:80", "https://a%2Fb", "https://a?b", "https://a/..", "https://a\\b@c", "https://a:b@c"} {
		f.Add(base)
	}
	f.Fuzz(func(t *testing.T, base string) {
		got, err := parseBase(base, "", true)
		if err != nil {
			return
		}
		given, err := url.Parse(base)
		if err != nil {
			t.Fatalf("%q is no URL: %v", base, err)
		}
		u, err := url.Parse(got + "/last")
		if err != nil {
			t.Fatalf("%q became %q: %v", base, got, err)
		}
		if u.Host != given.Host || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
			u.EscapedPath() != strings.TrimRight(given.EscapedPath(), "/")+"/last" {
			t.Errorf("%q became %q", base, got)
		}
		if u.Scheme != "https" && u.Scheme != "http" {
			t.Errorf("%q has the scheme %q", base, u.Scheme)
		}
	})
}

func TestSegment(t *testing.T) {
	for _, value := range []string{
		"acc-1", "a/b", "/", "a/", "%2e%2e", "%2E", "%", "%zz", "a?b", "a#b", "?", "#", "a b", " ", "+", "a+b", "a:b", "a;b=c", "a@b", "a&b",
		"...", "a..b", "..a", ".a", "~", "\\", "\"<>", "é", "日本語", "💳", "a\u2028b", strings.Repeat("a", maxSegment), strings.Repeat("/", maxSegment),
	} {
		segment, err := Segment("id", value)
		u, invalid := url.Parse("https://service.test/v1/" + segment + "/refunds")
		if err != nil || invalid != nil || u.Path != "/v1/"+value+"/refunds" || strings.Count(u.EscapedPath(), "/") != 3 || u.RawQuery != "" {
			t.Errorf("%.20q becomes %.60q: %v", value, segment, err)
		}
	}
	for _, value := range []string{
		"", ".", "..", "a/../b", "../b", "a/..", "a/./b", `a\..\b`, `..\`, "a\rb", "a\nb", "\r\n", "a\x00b", "\x7f", "\u0085",
		"a\xffb", "\xc0\xaf", "\xed\xa0\x80", strings.Repeat("a", maxSegment+1), strings.Repeat("a", 10_000),
	} {
		_, err := Segment("account id", value)
		if !errors.Is(err, fault.ErrInvalidArgument) || !strings.Contains(err.Error(), "account id") {
			t.Errorf("%.20q: %v", value, err)
		} else if len(value) > 2 && strings.Contains(err.Error(), value) {
			t.Errorf("%.20q is quoted: %v", value, err)
		}
	}
}

func TestRedirectHosts(t *testing.T) {
	for _, test := range []struct {
		pattern, url string
		followed     bool
	}{
		{"storage.test", "https://storage.test/x?sig=1", true}, {"storage.test", "https://STORAGE.test/x", true}, {"Storage.Test", "https://storage.test:443/", true},
		{"storage.test", "https://a.storage.test/", false}, {"storage.test", "http://storage.test/", false}, {"storage.test", "https://storage.test:8443/", false},
		{"storage.test", "https://storage.test.evil.test/", false}, {"storage.test", "https://evilstorage.test/", false}, {"storage.test", "ftp://storage.test/", false},
		{"*.storage.test", "https://a.storage.test/", true}, {"*.storage.test", "https://a.b.storage.test/", true}, {"*.storage.test", "https://storage.test/", false},
		{"*.storage.test", "https://evilstorage.test/", false}, {"storage.test:8443", "https://storage.test:8443/", true}, {"storage.test:8443", "https://storage.test/", false},
		{"[::1]:8443", "https://[::1]:8443/", true}, {"[::1]", "https://[::1]/", true}, {"10.0.0.1:65535", "https://10.0.0.1:65535/", true}, {"minio", "https://minio:/", true},
		{"xn--bcher-kva.test", "https://xn--bcher-kva.test/", true}, {"*.bücher.test", "https://a_b.bücher.test/", true},
		{"*.storage.test", "https://.storage.test/", false}, {"*.storage.test", "https://a..storage.test/", false}, {"*.storage.test", "https://.a.storage.test/", false},
		{"*.storage.test", "https://*.storage.test/", false}, {"*.storage.test", "https://a.storage.test./", false}, {"*.storage.test", "https://evil.test,a.storage.test/", false},
	} {
		hosts, refused := parseRedirectHosts([]string{test.pattern})
		u, err := url.Parse(test.url)
		if refused != nil || err != nil || hosts.match(u) != test.followed {
			t.Errorf("%s follows to %s: %v", test.pattern, test.url, !test.followed)
		}
	}
	for _, pattern := range []string{"", "*", "*.", "https://storage.test", "storage.test/", "a@storage.test", "*.*.test", "a*.test", "storage.test?x", "a b", "storage.test:x", ".*",
		"storage.test:", "*.storage.test:", "[::1]:", "storage.test:0", "storage.test:0443", "storage.test:65536", "storage.test:99999", "storage.test:100000", "[::1]:65536",
		"storage..test", ".storage.test", "*..test", "storage.test.", "*.test.", ".", "..", "a.test,b.test", "a.test;b", "a<b", "[storage.test]", "[]", "*.[::1]", "*.10.0.0.1"} {
		if _, err := New(testService(), "https://service.test", []Option{WithRedirectHosts("storage.test", pattern)}); !errors.Is(err, fault.ErrInvalidArgument) {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

// A redirect is followed within scheme, host and port, with the credential and nothing that the response set, and no
// further.
func TestRedirectsWithinTheOrigin(t *testing.T) {
	for location, followed := range map[string]bool{
		"/2": true, "https://service.test/2": true, "HTTPS://service.test/2": true, "//service.test/2": true, "../../2": true,
		"http://service.test/2": false, "https://service.test:8443/2": false, "https://other.test/2": false, "https://a:b@service.test/2": false,
		"//other.test/2": false, "https://service.test@other.test/2": false, "https://a.service.test/2": false, "https://service.test./2": false,
		"file:///etc/passwd": false, "https://[::1/%zz": false, "": false,
	} {
		network := serve(status(302, "Location", location, "Set-Cookie", "session=1; Path=/"), status(200))
		r := newClient(t, network, WithTokenSource(auth.Static("token"))).get(t.Context())
		if followed != (r.StatusCode == 200) || followed != (network.requests() == 2) {
			t.Errorf("%s: status %d after %d requests", location, r.StatusCode, network.requests())
		}
		if h := network.headers[len(network.headers)-1]; h.Get("Authorization") != "Bearer token" || h["Referer"] != nil || h["Cookie"] != nil {
			t.Errorf("%s: %v", location, h)
		}
	}
}

// A host that a redirect leads to gets no credential, and its refusals do not count as the
// service's.
func TestRedirectsAway(t *testing.T) {
	const away = "https://a.storage.test/x"
	for name, test := range map[string]struct {
		then     []string // where each response of the storage points to; the last is a 200
		method   string
		status   int
		requests int
	}{
		"followed":        {nil, "", 200, 2},
		"on to another":   {[]string{"https://b.storage.test/"}, "", 200, 3},
		"back":            {[]string{"https://service.test/1"}, "", 302, 2},
		"to a stranger":   {[]string{"https://evil.test/"}, "", 302, 2},
		"without TLS":     {[]string{"http://a.storage.test/"}, "", 302, 2},
		"with a password": {[]string{"https://a:b@a.storage.test/"}, "", 302, 2},
		"in a circle":     {[]string{away, away, away, away, away, away, away}, "", 302, 6},
		"of a write":      {nil, http.MethodPost, 302, 1},
	} {
		var seen []*http.Request
		network := roundTripper(func(r *http.Request) (*http.Response, error) {
			seen = append(seen, r)
			n := len(seen)
			if n == 1 {
				return reply(302, "", "Location", away), nil
			}
			if n-2 < len(test.then) {
				return reply(302, "", "Location", test.then[n-2]), nil
			}
			return reply(200, "content"), nil
		})
		c := newClient(t, network, WithTokenSource(auth.Static("canary-token")), WithHeader("X-Key", "canary-key"), WithRedirectHosts("*.storage.test"))
		call := streaming()
		call.Method = cmp.Or(test.method, http.MethodGet)
		call.Headers = func(h http.Header) {
			h["Range"], h["X-Merchant-Id"] = []string{"bytes=1-"}, []string{"canary-merchant"}
		}
		r := c.Do(t.Context(), call, nil)
		if r.StatusCode != test.status || len(seen) != test.requests {
			t.Errorf("%s: status %d after %d requests", name, r.StatusCode, len(seen))
		}
		for i, request := range seen {
			text := fmt.Sprint(request.Header)
			if got := strings.Count(text, "canary"); i == 0 && got != 3 || i > 0 && (got != 0 || request.Header.Get("Range") != "bytes=1-" || request.Header.Get("Referer") != "") {
				t.Errorf("%s: request %d carries %s", name, i+1, text)
			}
		}
	}
	// After a refusal by the other host, no token is renewed and no call waits.
	synctest.Test(t, func(t *testing.T) {
		for _, code := range []int{401, 429, 503} {
			asked := 0
			network := serve(status(302, "Location", away), status(code, "Retry-After", "30"), status(200))
			c := newClient(t, network, WithMaxRetries(0), WithRedirectHosts("*.storage.test"),
				WithTokenSource(auth.Func(func(context.Context) (string, error) { asked++; return fmt.Sprint(asked), nil })))
			c.get(t.Context())
			c.get(t.Context())
			if asked != 2 || time.Since(network.began) != 0 {
				t.Errorf("%d: asked %d times, the next call came after %v", code, asked, time.Since(network.began))
			}
		}
	})
}

// A base URL that ends in the path of the endpoint is refused. One that only resembles it is
// not.
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
		if refused := errors.Is(err, fault.ErrInvalidArgument); refused != test.refused || refused && !strings.Contains(err.Error(), "leave "+test.route+" off") {
			t.Errorf("%s: %v", test.base, err)
		}
	}
}
