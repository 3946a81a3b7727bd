package matrix

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// redirect is a world that answers the first request with a redirect. In the
// location, ORIGIN is the service's own scheme and host, HOST its host, and
// ELSEWHERE a server on another port, which must not be asked.
func redirect(code int, location string) world {
	return func(t *testing.T) site {
		elsewhere := listen(t, serveScript(answer(200, cardsJSON)))
		t.Cleanup(func() {
			if n := elsewhere.seenConnections(); n > 0 {
				t.Errorf("the redirect led %d connections elsewhere", n)
			}
		})
		var host string
		redirecting := func(c *net.TCPConn, n int) {
			target := strings.NewReplacer("ORIGIN", "http://"+host, "HOST", host, "ELSEWHERE", elsewhere.address).Replace(location)
			answer(code, "", "Location: "+target)(c, n)
		}
		server := listen(t, serveScript(in(redirecting, answer(200, cardsJSON))))
		host = server.address
		return site{base: "http://" + host, seen: server.seenRequests}
	}
}

// circle is a world that redirects for ever within itself.
func circle(code int) world { return wire(answer(code, "", "Location: /again")) }

// downgrade is a world of a TLS server that redirects to http on its own host.
func downgrade(code int) world {
	return func(t *testing.T) site {
		var requests atomic.Int64
		var server *httptest.Server
		server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			w.Header().Set("Location", "http://"+strings.TrimPrefix(server.URL, "https://")+"/down")
			w.WriteHeader(code)
		}))
		t.Cleanup(server.Close)
		return site{base: server.URL, http: server.Client(), seen: func() int { return int(requests.Load()) }}
	}
}

// redirects are the rows of the matrix that answer 3xx. Only a download follows,
// and only within its origin.
func redirects() (rows []matrixRow) {
	refused := map[int]func(int, ...error) cell{301: unknown, 302: unknown, 303: unknown, 307: rejected, 308: rejected}
	for _, code := range []int{301, 302, 303, 307, 308} {
		no, write := fail(1, errRedirect), refused[code](1, errRedirect)
		for _, r := range []struct {
			to       string
			world    world
			download cell
		}{
			{"a path", redirect(code, "/elsewhere"), ok(2)},
			{"its origin", redirect(code, "ORIGIN/elsewhere"), ok(2)},
			{"another port", redirect(code, "http://ELSEWHERE/"), no},
			{"another host", redirect(code, "//localhost.test/"), no},
			{"https", redirect(code, "https://HOST/"), no},
			{"http, from https", downgrade(code), no},
			{"user information", redirect(code, "http://user:password@HOST/"), no},
			{"nowhere", wire(answer(code, "")), no},
			{"what is no URL", redirect(code, "http://[::1"), no},
			{"a circle", circle(code), fail(6, errRedirect)},
		} {
			rows = append(rows, matrixRow{fmt.Sprintf("%d to %s", code, r.to), r.world, no, write, r.download})
		}
	}
	return rows
}

// TestFollowedRedirectCarriesTheCredential proves that the hop within the origin
// is a request like the first, and no other headers appear.
func TestFollowedRedirectCarriesTheCredential(t *testing.T) {
	var seen []http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header)
		if len(seen) == 1 {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}
	}))
	defer server.Close()
	if got := (site{base: server.URL}).download(t, t.Context()); got.err != nil {
		t.Fatal(got.err)
	}
	for i, h := range seen {
		if h.Get("Authorization") != "Bearer key" || h.Get("X-Merchant-Id") != merchant || h.Get("Referer") != "" {
			t.Errorf("request %d has the headers %v", i+1, h)
		}
	}
	if len(seen) != 2 {
		t.Errorf("%d requests", len(seen))
	}
}
