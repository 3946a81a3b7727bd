package console

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A site is a console on a loopback address.
type site struct {
	*testing.T
	url string
}

func start(t *testing.T) site {
	t.Helper()
	server := httptest.NewServer(New(false))
	t.Cleanup(server.Close)
	return site{t, server.URL}
}

type received struct {
	status int
	header http.Header
	body   string
	err    error
}

func (s site) request(method, path, body string, header ...string) *http.Request {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer key")
	req.Header.Set("X-Merchant-Id", "m-1")
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	return req
}

// send uses a new connection each time: on a kept one, net/http repeats a GET that was
// cut off.
func (s site) send(method, path, body string, header ...string) received {
	s.Helper()
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(s.request(method, path, body, header...))
	if err != nil {
		return received{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return received{resp.StatusCode, resp.Header, string(text), err}
}

func (s site) lookup(cards ...string) received {
	s.Helper()
	return s.send("POST", "/bins/multiple", `{"cards":[{"card":"`+strings.Join(cards, `"},{"card":"`)+`"}]}`)
}

func (s site) refund(id string) received {
	s.Helper()
	return s.send("POST", "/v1/acct/refunds", `{"refund_id":"`+id+`"}`)
}

func (s site) download() received {
	s.Helper()
	return s.send("GET", "/updater/inquiries/jobs/42/download", "")
}

func (s site) fault(rule string) {
	s.Helper()
	if r := s.send("POST", "/sandbox/faults", rule); r.status != 200 {
		s.Fatalf("%s: %+v", rule, r)
	}
}

func get[T any](s site, path string) T {
	s.Helper()
	var v T
	if r := s.send("GET", path, ""); r.status != 200 || json.Unmarshal([]byte(r.body), &v) != nil {
		s.Fatalf("%s: %+v", path, r)
	}
	return v
}

func (s site) requests() []entry {
	s.Helper()
	return get[listing](s, "/sandbox/requests").Requests
}
