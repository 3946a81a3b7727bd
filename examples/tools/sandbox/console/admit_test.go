package console

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func TestAdmit(t *testing.T) {
	const here = "127.0.0.1:8080"
	for _, tc := range []struct {
		name           string
		method, path   string
		host           string
		header         string // name: value, separated by ;
		local, remotes bool   // whether it is admitted, without and with -remote
	}{
		{"a program", "GET", "/sandbox/state", here, "", true, true},
		{"localhost", "GET", "/", "localhost:8080", "", true, true},
		{"IPv6", "GET", "/", "[::1]:8080", "", true, true},
		{"no port", "GET", "/", "[::1]", "", true, true},
		{"a tunnel", "GET", "/", "localhost:9000", "Origin: http://localhost:9000", true, true},
		{"the page", "POST", "/sandbox/reset", here, "Origin: http://" + here + "; Sec-Fetch-Site: same-origin", true, true},
		{"another address", "GET", "/", "192.0.2.1:8080", "", false, true},
		{"a container", "GET", "/", "sandbox:8080", "", false, true},
		{"a rebound name", "GET", "/", "rebound.example:8080", "", false, false},
		{"a rebound name in the API", "GET", "/sandbox/requests", "rebound.example:8080", "Sec-Fetch-Site: same-origin", false, false},
		{"a rebound name in an area", "POST", "/v1/a/refunds", "rebound.example:8080", "Origin: http://rebound.example:8080", false, false},
		{"a name below localhost", "GET", "/", "x.localhost:8080", "", false, false},
		{"no host", "GET", "/", "", "", false, false},
		{"another port", "POST", "/sandbox/reset", here, "Origin: http://127.0.0.1:3000", false, false},
		{"another site", "POST", "/sandbox/reset", here, "Origin: https://example.com", false, false},
		{"a sandboxed frame", "POST", "/sandbox/reset", here, "Origin: null", false, false},
		{"a script element", "GET", "/sandbox/requests", here, "Sec-Fetch-Site: cross-site; Sec-Fetch-Mode: no-cors", false, false},
		{"the same site", "GET", "/sandbox/requests", here, "Sec-Fetch-Site: same-site", false, false},
		{"a followed link", "GET", "/", here, "Sec-Fetch-Site: cross-site; Sec-Fetch-Mode: navigate; Sec-Fetch-Dest: document", true, true},
		{"a frame", "GET", "/", here, "Sec-Fetch-Site: cross-site; Sec-Fetch-Mode: navigate; Sec-Fetch-Dest: iframe", false, false},
		{"a link to the export", "GET", "/sandbox/requests.ndjson", here, "Sec-Fetch-Site: cross-site; Sec-Fetch-Mode: navigate; Sec-Fetch-Dest: document", false, false},
		{"an image of an area", "GET", "/updater/inquiries/jobs/42/download", here, "Sec-Fetch-Site: cross-site", false, false},
		{"a program in a container", "POST", "/bins/multiple", "host.docker.internal:8080", "", true, true},
	} {
		for _, remote := range []bool{false, true} {
			c := New(remote)
			r := httptest.NewRequest(tc.method, tc.path, nil)
			r.Host = tc.host
			for header := range strings.SplitSeq(tc.header, "; ") {
				if name, value, ok := strings.Cut(header, ": "); ok {
					r.Header.Set(name, value)
				}
			}
			w := httptest.NewRecorder()
			c.ServeHTTP(w, r)
			want := map[bool]bool{false: tc.local, true: tc.remotes}[remote]
			if (w.Code != http.StatusForbidden) != want {
				t.Errorf("%s, remote %v: %d", tc.name, remote, w.Code)
			}
			if recorded := c.record.last; !want && recorded != 0 {
				t.Errorf("%s, remote %v: recorded", tc.name, remote)
			}
		}
	}
}

func TestHeaders(t *testing.T) {
	s := start(t)
	for _, path := range []string{"/", "/sandbox/state", "/sandbox/requests.ndjson", "/sandbox/nothing"} {
		h := s.send("GET", path, "").header
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY",
		} {
			if h.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, h.Get(name))
			}
		}
		if policy := h.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; script-src 'sha256-") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %s", path, policy)
		}
		for name := range h {
			if strings.HasPrefix(name, "Access-Control") {
				t.Errorf("%s: %s", path, name)
			}
		}
	}
	if found := regexp.MustCompile(`https://|\son[a-z]+="|\sstyle="`).FindString(page); found != "" {
		t.Errorf("the page has %q, which its policy forbids", found)
	}
}
