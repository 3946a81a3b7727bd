package transport

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
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
		if got, err := parseBase(base, false); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", base, got, err, want)
		}
	}
	for _, host := range []string{"service.test", "10.0.0.1", "[2001:db8::1]", "0.0.0.0", "localhost.service.test", "127.0.0.1.service.test"} {
		base := "http://" + host + "/x"
		if _, err := parseBase(base, false); !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("%s: %v", base, err)
		}
		if got, err := parseBase(base, true); got != base || err != nil {
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
		_, err := parseBase(base, true)
		if !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("%q: %v", base, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q is quoted: %v", base, err)
		}
	}
}

// FuzzBaseURL looks for a base that leads a request somewhere else than it says.
func FuzzBaseURL(f *testing.F) {
	for _, base := range []string{"https://service.test/x/", "http://[::1]:80", "https://a%2Fb", "https://a?b", "https://a/..", "https://a\\b@c", "https://a:b@c"} {
		f.Add(base)
	}
	f.Fuzz(func(t *testing.T, base string) {
		got, err := parseBase(base, true)
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

// arriving sends a path parameter to a real server and returns the path that
// arrived there.
func arriving(t testing.TB) func(t *testing.T, value string) (string, error) {
	t.Helper()
	paths := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { paths <- r.URL.EscapedPath() }))
	t.Cleanup(server.Close)
	client, err := New(kind(), server.URL+"/gateway/", nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, value string) (string, error) {
		segment, err := Segment("id", value)
		if err != nil {
			return "", err
		}
		if r := client.Do(t.Context(), &Call{Method: http.MethodGet, Path: "/v1/" + segment + "/refunds"}, nil); r.Failure != nil {
			t.Fatalf("%q: %v", value, Describe("test", r.Failure))
		}
		return <-paths, nil
	}
}

// checkArrived proves that the value travelled as one segment and nothing else.
func checkArrived(t *testing.T, value, path string) {
	t.Helper()
	segment, ok := strings.CutPrefix(path, "/gateway/v1/")
	segment, also := strings.CutSuffix(segment, "/refunds")
	if got, err := url.PathUnescape(segment); !ok || !also || strings.Contains(segment, "/") || got != value || err != nil {
		t.Errorf("%q arrived as %q", value, path)
	}
}

func TestSegment(t *testing.T) {
	send := arriving(t)
	for _, value := range []string{
		"acc-1", "a/b", "/", "a/", "%2e%2e", "%2E", "%", "%zz", "a?b", "a#b", "?", "#", "a b", " ", "+", "a+b", "a:b", "a;b=c", "a@b", "a&b",
		"...", "a..b", "..a", ".a", "~", "\\", "\"<>", "é", "日本語", "💳", "a\u2028b", strings.Repeat("a", maxSegment), strings.Repeat("/", maxSegment),
	} {
		path, err := send(t, value)
		if err != nil {
			t.Errorf("%.20q: %v", value, err)
			continue
		}
		checkArrived(t, value, path)
	}
	for _, value := range []string{
		"", ".", "..", "a/../b", "../b", "a/..", "a/./b", `a\..\b`, `..\`, "a\rb", "a\nb", "\r\n", "a\x00b", "\x7f", "\u0085",
		"a\xffb", "\xc0\xaf", "\xed\xa0\x80", strings.Repeat("a", maxSegment+1), strings.Repeat("a", 10_000),
	} {
		_, err := Segment("account id", value)
		if !errors.Is(err, ErrInvalidArgument) || !strings.Contains(err.Error(), "account id") {
			t.Errorf("%.20q: %v", value, err)
		} else if len(value) > 2 && strings.Contains(err.Error(), value) {
			t.Errorf("%.20q is quoted: %v", value, err)
		}
	}
}

func FuzzSegment(f *testing.F) {
	for _, value := range []string{"a", "a/b", "..", "%2e%2e", "a?b#c", "a\r\nb", "é", "\xff", "a/../b", "a;b", "https://a"} {
		f.Add(value)
	}
	send := arriving(f)
	f.Fuzz(func(t *testing.T, value string) {
		path, err := send(t, value)
		if err == nil {
			checkArrived(t, value, path)
		} else if !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("%q: %v", value, err)
		}
	})
}
