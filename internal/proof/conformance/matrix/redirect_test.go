package matrix

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/proof/conformance/operations"
	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/internal/proof/testkit/options"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

// redirects is a network that keeps the requests. It redirects those below /hops/n another n
// times, answers those below /moved, and redirects all others.
type redirects struct {
	status   int
	location string
	last     string // where the hops end
	arrived  []*http.Request
}

func (n *redirects) RoundTrip(r *http.Request) (*http.Response, error) {
	n.arrived = append(n.arrived, r)
	hops, counting := strings.CutPrefix(r.URL.Path, "/hops/")
	location := n.location
	if left, _ := strconv.Atoi(hops); counting {
		location = fmt.Sprint("/hops/", left-1)
		if left == 1 {
			location = n.last
		}
	} else if strings.HasPrefix(r.URL.Path, "/moved") {
		return testkit.Answer(200, `{"cards":[]}`)(r)
	}
	return testkit.Answer(n.status, "", "Location", location, "Set-Cookie", "session=1; Path=/")(r)
}

// check checks the credentials of the requests, and what none of them may carry.
func (n *redirects) check(t *testing.T, operation string) {
	t.Helper()
	want := map[string]string{"lookup": "Bearer key", "download": "Bearer token"}[operation]
	for _, r := range n.arrived {
		if r.URL.Host != n.arrived[0].URL.Host || r.URL.Scheme != n.arrived[0].URL.Scheme {
			t.Errorf("%s reached %s", operation, r.URL)
		}
		if got := strings.Join(r.Header["Authorization"], ","); got != want {
			t.Errorf("%s sent Authorization %q to %s, want %q", operation, got, r.URL, want)
		}
		if r.Header["Referer"] != nil || r.Header["Cookie"] != nil {
			t.Errorf("%s sent %v to %s", operation, r.Header, r.URL)
		}
	}
}

// TestRedirects proves that a lookup and a refund follow no redirect, a download one within
// its origin alone, and that no credential goes anywhere else.
func TestRedirects(t *testing.T) {
	const plain, https = "http://127.0.0.1:8080", "https://example.com"
	for _, c := range []struct {
		base, location string
		same           bool
	}{
		{plain, plain + "/moved", true},
		{plain, "HTTP://127.0.0.1:8080/moved", true},
		{plain, "/moved", true},
		{plain + "/base", "../../../../../../moved", true},
		{plain, "//127.0.0.1:8080/moved", true},
		{plain, "//127.0.0.1:8081/moved", false},
		{plain, "http://127.0.0.1:8081/moved", false},
		{plain, "http://localhost:8080/moved", false},
		{https, https + "/moved", true},
		{https, "https://example.com./moved", false},
		{https, "https://www.example.com/moved", false},
		{https, "https://example.com@www.example.com/moved", false},
		{plain, "http://user:word@127.0.0.1:8081/moved", false},
		{https, "http://example.com/moved", false},
		{"http://example.com", https + "/moved", false},
		{plain, "file:///etc/passwd", false},
		{plain, "http://[::1/%zz", false},
		{plain, "", false},
	} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			network := &redirects{status: status, location: c.location}
			for _, e := range operations.At(t, c.base, options.WithInsecureHTTP(), options.WithHTTPClient(&http.Client{Transport: network})) {
				name := fmt.Sprintf("%s from %s to %q by %d", e.Name, c.base, c.location, status)
				network.arrived = nil
				_, err := e.Call(t.Context())
				network.check(t, e.Name)
				if e.Name == "download" && c.same {
					if got := network.arrived; err != nil || len(got) != 2 || got[1].URL.Path != "/moved" || got[1].Header.Get("X-Merchant-Id") != "merchant" {
						t.Errorf("%s was not followed: %d requests, %v", name, len(got), err)
					}
					continue
				}
				if len(network.arrived) != 1 || !errors.Is(err, fault.ErrRedirect) {
					t.Errorf("%s: %d requests and %v, want one and a redirect", name, len(network.arrived), err)
				}
				if e.Name == "refund" && errors.Is(err, refunds.ErrRejected) != (status >= 307 && c.location == "") {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}

// TestRedirectHops proves that a chain of redirects ends.
func TestRedirectHops(t *testing.T) {
	for _, c := range []struct {
		hops     int // beyond the first
		last     string
		requests int
		ok       bool
	}{
		{4, "/moved", 6, true},
		{5, "/moved", 6, false},
		{1000, "/moved", 6, false},
		{2, "https://other.example/moved", 3, false},
	} {
		network := &redirects{status: http.StatusFound, location: fmt.Sprint("/hops/", c.hops), last: c.last}
		_, err := operations.At(t, testkit.Base, options.WithHTTPClient(&http.Client{Transport: network}))[2].Call(t.Context())
		if got := len(network.arrived); got != c.requests || (err == nil) != c.ok || err != nil && !errors.Is(err, fault.ErrRedirect) {
			t.Errorf("%d hops to %s: %d requests and %v, want %d", c.hops, c.last, got, err, c.requests)
		}
		if e, failed := errors.AsType[*updater.Error](err); failed && e.Attempts != c.requests {
			t.Errorf("%d hops to %s: the error counts %d attempts", c.hops, c.last, e.Attempts)
		}
		network.check(t, "download")
	}
}
