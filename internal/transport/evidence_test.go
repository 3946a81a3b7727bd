package transport

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The evidence that follows from the events of an HTTP transport.
func TestConnTrace(t *testing.T) {
	counted, plain := new(countedConnection), struct{ net.Conn }{}
	counted.written.Add(100)
	got := func(c net.Conn) func(*httptrace.ClientTrace) {
		return func(tr *httptrace.ClientTrace) { tr.GotConn(httptrace.GotConnInfo{Conn: c}) }
	}
	asked := func(tr *httptrace.ClientTrace) { tr.GetConn("host:443") }
	writes := func(tr *httptrace.ClientTrace) { counted.written.Add(7) }
	wrote := func(err error) func(*httptrace.ClientTrace) {
		return func(tr *httptrace.ClientTrace) { tr.WroteRequest(httptrace.WroteRequestInfo{Err: err}) }
	}
	responded := func(tr *httptrace.ClientTrace) { tr.GotFirstResponseByte() }
	for _, test := range []struct {
		name   string
		events []func(*httptrace.ClientTrace)
		want   Evidence
	}{
		{"nothing", nil, Evidence{BytesWritten: -1}},
		{"asked for a connection", []func(*httptrace.ClientTrace){asked}, Evidence{Traced: true}},
		{"got one", []func(*httptrace.ClientTrace){asked, got(counted)}, Evidence{Traced: true, Connected: true}},
		{"got one, without asking", []func(*httptrace.ClientTrace){got(counted)}, Evidence{Traced: true, Connected: true}},
		{"got one that is not counted", []func(*httptrace.ClientTrace){asked, got(plain)}, Evidence{Traced: true, Connected: true, BytesWritten: -1}},
		{"wrote a part", []func(*httptrace.ClientTrace){asked, got(counted), writes, wrote(io.EOF)}, Evidence{Traced: true, Connected: true, BytesWritten: 7}},
		{"wrote it", []func(*httptrace.ClientTrace){asked, got(counted), writes, wrote(nil)}, Evidence{Traced: true, Connected: true, BytesWritten: 7, RequestWritten: true}},
		{"response", []func(*httptrace.ClientTrace){asked, got(counted), writes, wrote(nil), responded},
			Evidence{Traced: true, Connected: true, BytesWritten: 7, RequestWritten: true, ResponseStarted: true}},
		// The bytes of the first connection count.
		{"given to another", []func(*httptrace.ClientTrace){asked, got(counted), writes, wrote(nil), asked, got(counted)},
			Evidence{Traced: true, Connected: true, BytesWritten: 7, RequestWritten: true}},
		{"given to another that is not counted", []func(*httptrace.ClientTrace){asked, got(counted), asked, got(plain)},
			Evidence{Traced: true, Connected: true, BytesWritten: -1}},
	} {
		var w connTrace
		tr := httptrace.ContextClientTrace(w.withTrace(t.Context()))
		if tr.Got1xxResponse != nil {
			t.Error("a hook for 1xx lifts the bound on them")
		}
		for _, event := range test.events {
			event(tr)
		}
		if got := w.evidence(); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// The evidence of a response on a socket: with the library's transport, and with the caller's
// over HTTP/1.1 and HTTP/2, whose connections carry other requests as well.
func TestEvidenceOfAResponse(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	plain := httptest.NewServer(handler)
	defer plain.Close()
	second := httptest.NewUnstartedServer(handler)
	second.EnableHTTP2 = true
	second.StartTLS()
	defer second.Close()
	counting := newTransport(&Settings{ConnectionReuse: time.Minute})
	counting.TLSClientConfig.RootCAs = second.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	counting.Protocols.SetHTTP2(true)
	for name, test := range map[string]struct {
		base    string
		client  *http.Client
		counted bool
	}{
		"library's": {plain.URL, nil, true}, "caller's": {plain.URL, plain.Client(), false}, "caller's that counts": {plain.URL, client(counting), true},
		"HTTP/2": {second.URL, second.Client(), false}, "HTTP/2 that counts": {second.URL, client(counting), false},
	} {
		var opts []Option
		if test.client != nil {
			opts = append(opts, WithHTTPClient(test.client))
			defer test.client.CloseIdleConnections()
		}
		c := clientOf(t, test.base, opts...)
		first := c.Do(t.Context(), write(), nil).Evidence.BytesWritten
		before := time.Now()
		r := c.Do(t.Context(), write(), nil)
		e := r.Evidence
		// With HTTP/2, the event that the request was written may come after the response.
		written := e.RequestWritten || strings.HasPrefix(name, "HTTP/2")
		if r.Outcome != OutcomeAccepted || !e.Traced || !e.Connected || !written || !e.ResponseStarted || e.StatusCode != 200 {
			t.Errorf("%s: %+v, %v", name, e, r.err())
		}
		if e.Began.Before(before) || e.Ended.Before(e.Began) || e.Ended.After(time.Now()) {
			t.Errorf("%s: %v to %v", name, e.Began, e.Ended)
		}
		// The count of the second request leaves out the bytes of the first.
		if test.counted != (e.BytesWritten > 0) || !test.counted && e.BytesWritten != -1 || e.BytesWritten != first {
			t.Errorf("%s: %d bytes, then %d", name, first, e.BytesWritten)
		}
	}
}

// A response may come before the event that the request was written. The verdict on a write
// waits for that event, for a second at most.
func TestResponseOvertakesTheWriteEvent(t *testing.T) {
	for name, test := range map[string]struct {
		told    bool
		err     error
		outcome Outcome
		took    time.Duration
	}{
		"written":    {true, nil, OutcomeAccepted, time.Millisecond},
		"broken":     {true, io.ErrClosedPipe, OutcomeUnknown, time.Millisecond},
		"never told": {false, nil, OutcomeUnknown, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			network := roundTripper(func(r *http.Request) (*http.Response, error) {
				trace := httptrace.ContextClientTrace(r.Context())
				trace.GotConn(httptrace.GotConnInfo{Conn: struct{ net.Conn }{}})
				if test.told {
					time.AfterFunc(time.Millisecond, func() { trace.WroteRequest(httptrace.WroteRequestInfo{Err: test.err}) })
				}
				return reply(201, ""), nil
			})
			began := time.Now()
			r := newClient(t, network).Do(t.Context(), write(), nil)
			if took := time.Since(began); r.Outcome != test.outcome || took != test.took {
				t.Errorf("%s: %v after %v", name, r.Outcome, took)
			}
		})
	}
}

// No byte leaves on a connection that has ended, after its deadline, or after the attempt that
// asked for it.
func TestSpoiltConnectionTakesNoByte(t *testing.T) {
	for name, spoil := range map[string]func(*countedConnection){
		"closed":             func(c *countedConnection) { c.state.Store(waiting); c.Close() },
		"after its deadline": func(c *countedConnection) { c.state.Store(waiting); c.user.Store(&connTrace{deadline: time.Now()}) },
		"after the attempt": func(c *countedConnection) {
			var trace connTrace
			trace.leave()
			httptrace.ContextClientTrace(trace.withTrace(t.Context())).GotConn(httptrace.GotConnInfo{Conn: c})
		},
	} {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		c := &countedConnection{Conn: &dead{ours, 100}}
		spoil(c)
		if n, err := c.Write([]byte("POST")); n != 0 || err != errSpoilt || c.BytesWritten() != 0 {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
}

// dead is a connection that breaks after some bytes.
type dead struct {
	net.Conn
	left int
}

func (d *dead) Write(p []byte) (int, error) {
	n := min(len(p), d.left)
	d.left -= n
	if n < len(p) {
		return n, io.ErrClosedPipe
	}
	return n, nil
}

// Bytes that did not leave are not counted. A write is retried only if no byte left.
func TestCountedConnection(t *testing.T) {
	for _, left := range []int{0, 1, 50} {
		var dials int
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			dials++
			ours, theirs := net.Pipe()
			t.Cleanup(func() { ours.Close(); theirs.Close() })
			return &countedConnection{Conn: &dead{ours, left}}, nil
		}}
		c, err := New(testService(), "http://127.0.0.1", []Option{WithHTTPClient(&http.Client{Transport: transport}), WithRetryWait(0, 0)})
		if err != nil {
			t.Fatal(err)
		}
		r := c.Do(t.Context(), write(), nil)
		want, outcome := 4, OutcomeNotSent
		if left > 0 {
			want, outcome = 1, OutcomeUnknown
		}
		if check(t, r.err(), io.ErrClosedPipe); dials != want || r.Outcome != outcome || r.Evidence.BytesWritten != int64(left) {
			t.Errorf("%d bytes leave: %d dials, %v, %+v", left, dials, r.Outcome, r.Evidence)
		}
	}
}
