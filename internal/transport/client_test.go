package transport

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// idle is a transport that knows when someone flushes its connections.
type idle struct {
	*service
	flushed atomic.Int64
}

func (i *idle) CloseIdleConnections() { i.flushed.Add(1) }

// TestCallersClientIsLeftAlone proves that neither the caller's http.Client nor
// its connections are changed, whatever becomes of a call.
func TestCallersClientIsLeftAlone(t *testing.T) {
	network := &idle{service: serve(status(503), status(302, "Location", "https://service.test/x"), status(200), gone)}
	jar := &refusingJar{}
	redirects := 0
	hc := &http.Client{Transport: network, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		redirects++
		return nil
	}}
	before := *hc
	c := newClient(t, nil, WithHTTPClient(hc), WithRetryWait(0, 0))
	for range 6 {
		c.get(t.Context())
		c.Do(t.Context(), write(), nil)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	c.get(ended)
	if hc.Transport != before.Transport || hc.Jar != before.Jar || hc.Timeout != before.Timeout ||
		reflect.ValueOf(hc.CheckRedirect).Pointer() != reflect.ValueOf(before.CheckRedirect).Pointer() {
		t.Errorf("the client became %+v", hc)
	}
	if network.flushed.Load() != 0 || redirects != 0 {
		t.Errorf("connections flushed %d times, CheckRedirect asked %d times", network.flushed.Load(), redirects)
	}
}

func gone(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }

// A refusingJar panics when it is used.
type refusingJar struct{ http.CookieJar }

// TestFailuresKeepConnections proves that a failed call costs the others none of
// their connections.
func TestFailuresKeepConnections(t *testing.T) {
	connections := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections[r.RemoteAddr] = true
		if r.URL.Path == "/fail" {
			w.WriteHeader(503)
		}
		fmt.Fprint(w, "text")
	}))
	defer server.Close()
	c, err := New(kind(), server.URL, []Option{WithRetryWait(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if r := c.get(t.Context()); r.Failure != nil {
			t.Fatal(r.err())
		}
		check(t, c.Do(t.Context(), &Call{Method: http.MethodGet, Path: "/fail"}, nil).err(), ErrServer)
	}
	if len(connections) != 1 {
		t.Errorf("%d connections for 25 requests, one after another", len(connections))
	}
}

// TestConcurrentCalls proves, under the race detector, that one client serves
// many goroutines with options of their own.
func TestConcurrentCalls(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("X-Call") != string(body) || r.Header.Get("Authorization") != "Bearer token-"+string(body) {
			t.Errorf("the call of %q carries %v", body, r.Header)
		}
		w.Write(body)
	}))
	defer server.Close()
	c, err := New(kind(), server.URL, []Option{
		WithTokenSource(StaticToken("t")), WithRateLimit(1e9, 1000),
		WithHeader("X-A", "a"), WithHeader("X-B", "b"), WithHeader("X-C", "c"), // a list with room for more
	})
	if err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for i := range 32 {
		calls.Go(func() {
			for j := range 20 {
				name := fmt.Sprintf("%d-%d", i, j)
				call := &Call{Operation: "echo", Method: http.MethodPost, Path: "/x", Body: []byte(name)}
				r := c.Do(t.Context(), call, []Option{WithHeader("X-Call", name), WithTokenSource(StaticToken("token-" + name))})
				if r.Failure != nil || string(r.Body) != name {
					t.Errorf("%s: %q, %v", name, r.Body, r.err())
				}
			}
		})
	}
	calls.Wait()
}

// TestOwnTransport proves the settings that the promises rest on.
func TestOwnTransport(t *testing.T) {
	tr := newTransport(&Settings{ConnectionReuse: 2 * time.Second})
	if !tr.Protocols.HTTP1() || tr.Protocols.HTTP2() || tr.Protocols.UnencryptedHTTP2() {
		t.Errorf("protocols %v", tr.Protocols)
	}
	if tr.TLSClientConfig.MinVersion != tls.VersionTLS12 || tr.TLSClientConfig.InsecureSkipVerify || tr.MaxResponseHeaderBytes != maxHeaderBytes ||
		tr.IdleConnTimeout != 2*time.Second || tr.DisableKeepAlives || tr.TLSHandshakeTimeout == 0 || tr.ExpectContinueTimeout != 0 {
		t.Errorf("%+v", tr)
	}
}
