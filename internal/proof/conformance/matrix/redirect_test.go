package matrix

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/conformance/operations"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

// An arrival is a request as a listener saw it.
type arrival struct {
	listener, host, path string
	header               http.Header
}

// origins are three listeners that write down what arrives. Requests below
// /moved are answered with a result, all others with the redirect of the test.
type origins struct {
	plain, other, secure *httptest.Server

	mu       sync.Mutex
	status   int
	location string
	last     string // where a chain of hops ends
	arrivals []arrival
}

func newOrigins(t *testing.T) *origins {
	o := &origins{}
	listener := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { o.answer(name, w, r) }
	}
	o.plain = httptest.NewServer(listener("plain"))
	o.other = httptest.NewServer(listener("other"))
	o.secure = httptest.NewTLSServer(listener("secure"))
	t.Cleanup(func() { o.plain.Close(); o.other.Close(); o.secure.Close() })
	return o
}

func (o *origins) answer(name string, w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.arrivals = append(o.arrivals, arrival{name, r.Host, r.URL.Path, r.Header.Clone()})
	http.SetCookie(w, &http.Cookie{Name: "session", Value: "1", Path: "/"})
	switch hops, counting := strings.CutPrefix(r.URL.Path, "/hops/"); {
	case strings.HasPrefix(r.URL.Path, "/moved"):
		fmt.Fprint(w, `{"cards":[]}`)
	case counting:
		n, _ := strconv.Atoi(hops)
		next := fmt.Sprint("/hops/", n-1)
		if n == 1 {
			next = o.last
		}
		w.Header().Set("Location", next)
		w.WriteHeader(http.StatusFound)
	default:
		w.Header().Set("Location", o.location)
		w.WriteHeader(o.status)
	}
}

// begin forgets the arrivals and sets the redirects to come.
func (o *origins) begin(status int, location, last string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.status, o.location, o.last, o.arrivals = status, location, last, nil
}

func (o *origins) arrived() []arrival {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.arrivals
}

// sharedName is a client for which https://example.com and http://example.com
// are two of the listeners, so that nothing but the scheme tells them apart.
func (o *origins) sharedName() bins.Option {
	transport := o.secure.Client().Transport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		to := o.secure
		if strings.HasSuffix(address, ":80") {
			to = o.plain
		}
		return new(net.Dialer).DialContext(ctx, network, to.Listener.Addr().String())
	}
	return bins.WithHTTPClient(&http.Client{Transport: transport})
}

// checkHeaders checks what no request may carry, and the credentials of those
// that arrived where they were meant to.
func checkHeaders(t *testing.T, operation string, a arrival) {
	t.Helper()
	for _, name := range []string{"Referer", "Cookie"} {
		if values, sent := a.header[name]; sent {
			t.Errorf("%s sent %s %q to %s", operation, name, values, a.path)
		}
	}
	want := map[string]string{"lookup": "Bearer key", "download": "Bearer token"}[operation]
	if got := strings.Join(a.header["Authorization"], ","); got != want {
		t.Errorf("%s sent Authorization %q to %s, want %q", operation, got, a.path, want)
	}
}

// TestRedirects proves that a lookup and a refund follow no redirect, a download one within
// its origin alone, and that no credential goes anywhere else.
func TestRedirects(t *testing.T) {
	o := newOrigins(t)
	at := func(s *httptest.Server, as string) string { return as + s.Listener.Addr().String() }
	_, port, err := net.SplitHostPort(o.plain.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	https := "https://example.com"
	for _, c := range []struct {
		name, base, location string
		same                 bool
	}{
		{"same origin", o.plain.URL, o.plain.URL + "/moved", true},
		{"same origin with another case", o.plain.URL, at(o.plain, "HTTP://") + "/moved", true},
		{"path", o.plain.URL, "/moved", true},
		{"relative", o.plain.URL + "/base", "../../../../../../moved", true},
		{"same origin without a scheme", o.plain.URL, at(o.plain, "//") + "/moved", true},
		{"other origin without a scheme", o.plain.URL, at(o.other, "//") + "/moved", false},
		{"other port", o.plain.URL, o.other.URL + "/moved", false},
		{"other name of the host", o.plain.URL, "http://localhost:" + port + "/moved", false},
		{"host with a dot", https, "https://example.com./moved", false},
		{"subdomain", https, "https://www.example.com/moved", false},
		{"user information", o.plain.URL, at(o.plain, "http://user:word@") + "/moved", false},
		{"user information that looks like the host", https, "https://example.com@www.example.com/moved", false},
		{"same origin over TLS", https, https + "/moved", true},
		{"to http", https, "http://example.com/moved", false},
		{"to https", "http://example.com", https + "/moved", false},
		{"other scheme", o.plain.URL, "file:///etc/passwd", false},
		{"unparsable", o.plain.URL, "http://[::1/%zz", false},
		{"absent", o.plain.URL, "", false},
	} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			t.Run(fmt.Sprint(c.name, " ", status), func(t *testing.T) {
				opts := []bins.Option{bins.WithRetryWait(0, 0), bins.WithInsecureHTTP()}
				if strings.HasSuffix(c.base, "example.com") {
					opts = append(opts, o.sharedName())
				}
				list, err := operations.New(c.base, operations.Plain(), opts...)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range list {
					o.begin(status, c.location, "")
					_, err := e.Call(t.Context())
					checkRedirect(t, e.Name, status, o.arrived(), err, c.same)
				}
			})
		}
	}
}

func checkRedirect(t *testing.T, operation string, status int, arrivals []arrival, err error, same bool) {
	t.Helper()
	for _, a := range arrivals {
		if a.listener != arrivals[0].listener || a.host != arrivals[0].host {
			t.Errorf("%s of %s reached %s at %s", operation, arrivals[0].host, a.host, a.listener)
		}
		checkHeaders(t, operation, a)
	}
	if operation == "download" && same {
		if err != nil || len(arrivals) != 2 || arrivals[1].path != "/moved" || arrivals[1].header.Get("X-Merchant-Id") != "merchant" {
			t.Errorf("%s was not followed: %v, %v", operation, arrivals, err)
		}
		return
	}
	if len(arrivals) != 1 || !errors.Is(err, bins.ErrRedirect) {
		t.Errorf("%s: %d requests and %v, want one and ErrRedirect", operation, len(arrivals), err)
	}
	if operation == "refund" && errors.Is(err, refunds.ErrRejected) != (status >= 307) {
		t.Errorf("%s: status %d gave %v", operation, status, err)
	}
}

// TestRedirectHops proves that a chain of redirects ends.
func TestRedirectHops(t *testing.T) {
	o := newOrigins(t)
	list, err := operations.New(o.plain.URL, operations.Plain())
	if err != nil {
		t.Fatal(err)
	}
	download := list[2]
	for _, c := range []struct {
		hops     int // beyond the first
		last     string
		requests int
		ok       bool
	}{
		{4, "/moved", 6, true},
		{5, "/moved", 6, false},
		{1000, "/moved", 6, false},
		{2, o.other.URL + "/moved", 3, false},
	} {
		o.begin(http.StatusFound, fmt.Sprint("/hops/", c.hops), c.last)
		_, err := download.Call(t.Context())
		if got := len(o.arrived()); got != c.requests || (err == nil) != c.ok || err != nil && !errors.Is(err, bins.ErrRedirect) {
			t.Errorf("%d hops to %s: %d requests and %v, want %d", c.hops, c.last, got, err, c.requests)
		}
		if e, failed := errors.AsType[*updater.Error](err); failed && e.Attempts != c.requests {
			t.Errorf("%d hops to %s: the error counts %d attempts", c.hops, c.last, e.Attempts)
		}
		for _, a := range o.arrived() {
			checkHeaders(t, "download", a)
		}
	}
}
