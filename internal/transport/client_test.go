package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
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

// TestEveryRepetitionCarriesTheBody proves that the body is the same in each
// attempt.
func TestEveryRepetitionCarriesTheBody(t *testing.T) {
	var bodies []string
	network := roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.GetBody != nil {
			t.Error("net/http could send the body again by itself")
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || r.ContentLength != int64(len(body)) {
			t.Errorf("%d of %d bytes, %v", len(body), r.ContentLength, err)
		}
		bodies = append(bodies, string(body))
		r.Body.Close()
		return reply(429, ""), nil
	})
	newClient(t, network, WithRetryWait(0, 0)).Do(t.Context(), write(), nil)
	if got := strings.Join(bodies, ","); got != "{},{},{},{}" {
		t.Error(got)
	}
}

// TestBodiesAreClosed proves that no answer is left open, whatever it was.
func TestBodiesAreClosed(t *testing.T) {
	for _, code := range []int{101, 200, 204, 302, 304, 400, 401, 429, 503} {
		var open []*body
		network := roundTripper(func(r *http.Request) (*http.Response, error) {
			ended, cancel := context.WithCancel(r.Context())
			cancel()
			resp := reply(code, "", "Location", "https://elsewhere.test/")
			open = append(open, &body{Reader: strings.NewReader("text"), ctx: ended})
			resp.Body = open[len(open)-1]
			return resp, nil
		})
		newClient(t, network, WithRetryWait(0, 0)).get(t.Context())
		for i, b := range open {
			if !b.closed {
				t.Errorf("status %d: body %d stays open", code, i+1)
			}
		}
	}
}

// TestBareResponse proves that a transport of the caller's, a fake for example,
// may leave out what it has no use for.
func TestBareResponse(t *testing.T) {
	network := roundTripper(func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil })
	c := newClient(t, network)
	if r := c.Do(t.Context(), write(), nil); r.Failure != nil || len(r.Body) != 0 {
		t.Errorf("%q, %v", r.Body, r.err())
	}
	r := c.Do(t.Context(), streaming(), nil)
	if r.Failure != nil {
		t.Fatal(r.err())
	}
	defer r.Stream.Close()
	if got, err := io.ReadAll(r.Stream); len(got) != 0 || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestAnswerAndError proves that the error counts, and that net/http has no
// reason to complain of it in the log of the process.
func TestAnswerAndError(t *testing.T) {
	var printed bytes.Buffer
	log.SetOutput(&printed)
	defer log.SetOutput(os.Stderr)
	network := roundTripper(func(*http.Request) (*http.Response, error) { return reply(200, "secret"), io.ErrUnexpectedEOF })
	r := newClient(t, network, WithMaxRetries(0)).Do(t.Context(), write(), nil)
	check(t, r.err(), ErrNoAnswer, io.ErrUnexpectedEOF)
	if printed.Len() > 0 || r.Outcome != OutcomeUnknown {
		t.Errorf("%v, printed %q", r.Outcome, &printed)
	}
}

func TestNoContext(t *testing.T) {
	var none context.Context
	r := newClient(t, serve(status(200))).get(none)
	if !errors.Is(r.err(), ErrInvalidArgument) || r.Outcome != OutcomeNotSent {
		t.Errorf("%v, %v", r.Outcome, r.err())
	}
	r = newClient(t, serve(status(200))).Do(t.Context(), &Call{Method: "BAD METHOD", Path: "/"}, nil)
	if !errors.Is(r.err(), ErrInvalidArgument) {
		t.Error(r.err())
	}
}
