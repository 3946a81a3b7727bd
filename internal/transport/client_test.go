package transport

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"sync/atomic"
	"testing"
)

// idle is a transport that counts the calls of CloseIdleConnections.
type idle struct {
	*service
	flushed atomic.Int64
}

func (i *idle) CloseIdleConnections() { i.flushed.Add(1) }

// A call changes neither the caller's http.Client nor its connections.
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

// A transport of the caller, such as a fake, may leave out most of a response.
func TestBareResponse(t *testing.T) {
	network := roundTripper(func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil })
	c := newClient(t, network)
	for _, call := range []*Call{write(), streaming()} {
		r := c.Do(t.Context(), call, nil)
		if r.Failure != nil || len(r.Body) != 0 {
			t.Errorf("%s: %q, %v", call.Operation, r.Body, r.err())
		}
		if call.Stream {
			r.Stream.Close()
		}
	}
}
