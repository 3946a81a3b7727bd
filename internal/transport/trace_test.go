package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

type counter struct {
	net.Conn
	n int64
}

func (c *counter) BytesWritten() int64 { return c.n }

// TestWitness proves what the events of an HTTP transport come to.
func TestConnTrace(t *testing.T) {
	counted, plain := &counter{n: 100}, struct{ net.Conn }{}
	got := func(c net.Conn) func(*httptrace.ClientTrace) {
		return func(tr *httptrace.ClientTrace) { tr.GotConn(httptrace.GotConnInfo{Conn: c}) }
	}
	asked := func(tr *httptrace.ClientTrace) { tr.GetConn("host:443") }
	writes := func(tr *httptrace.ClientTrace) { counted.n += 7 }
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
		// The second connection's count says nothing of the first's.
		{"resent by net/http", []func(*httptrace.ClientTrace){asked, got(counted), writes, wrote(nil), asked, got(counted)},
			Evidence{Traced: true, Connected: true, BytesWritten: -1, RequestWritten: true}},
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

// TestWriteIsRepeatedOnProof proves that a write is repeated after what may be anything,
// such as a response that is not HTTP, if no byte of it had left, and only then.
func TestWriteIsRepeatedOnProof(t *testing.T) {
	for written, requests := range []int{2, 1} {
		s := serve(func(r *http.Request) (*http.Response, error) {
			connection := &counter{}
			trace := httptrace.ContextClientTrace(r.Context())
			trace.GotConn(httptrace.GotConnInfo{Conn: connection})
			connection.n += int64(written)
			trace.GotFirstResponseByte()
			return nil, errors.New("malformed")
		}, status(200))
		r := newClient(t, s, WithRetryWait(0, 0)).Do(t.Context(), write(), nil)
		if s.requests() != requests || (r.Failure == nil) != (requests == 2) {
			t.Errorf("%d bytes had left: %d requests, %v", written, s.requests(), r.err())
		}
	}
}

// TestBrokenIsNotGarbled proves that a connection which ends within a response is told
// from a response that is not HTTP.
func TestBrokenIsNotGarbled(t *testing.T) {
	for failed, want := range map[error]error{
		io.EOF: ErrNoResponse, &net.OpError{Op: "read", Err: syscall.ETIMEDOUT}: ErrNoResponse, errors.New("malformed"): ErrBadResponse,
	} {
		s := serve(func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			trace.GotConn(httptrace.GotConnInfo{Conn: &counter{}})
			trace.GotFirstResponseByte()
			return nil, failed
		})
		check(t, newClient(t, s, WithMaxRetries(0)).get(t.Context()).err(), want, failed)
	}
}

// TestCallersTraceStays proves that a caller's own trace is told as well.
func TestCallersTraceStays(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	var told bool
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { told = true }})
	c, err := New(kind(), server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r := c.get(ctx); r.Failure != nil || !told {
		t.Errorf("told %t, %v", told, r.err())
	}
}

// TestEvidenceOfAResponse proves it on a socket, for the library's transport over
// TCP and for the caller's over TLS and HTTP/2.
func TestEvidenceOfAResponse(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	plain := httptest.NewServer(handler)
	defer plain.Close()
	second := httptest.NewUnstartedServer(handler)
	second.EnableHTTP2 = true
	second.StartTLS()
	defer second.Close()
	secure := httptest.NewTLSServer(handler)
	defer secure.Close()
	counted := func(http2 bool) *http.Client {
		transport := newTransport(&Settings{ConnectionReuse: time.Minute})
		transport.TLSClientConfig.RootCAs = secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
		transport.Protocols.SetHTTP2(http2)
		return &http.Client{Transport: transport}
	}
	for name, test := range map[string]struct {
		base    string
		client  *http.Client
		counted bool
	}{
		"library's": {plain.URL, nil, true}, "caller's": {plain.URL, plain.Client(), false},
		"TLS": {secure.URL, counted(false), true}, "HTTP/2": {second.URL, second.Client(), false},
		// Its connections carry other requests as well.
		"HTTP/2, counted": {second.URL, counted(true), false},
	} {
		var opts []Option
		if test.client != nil {
			opts = append(opts, WithHTTPClient(test.client))
			defer test.client.CloseIdleConnections()
		}
		c, err := New(kind(), test.base, opts)
		if err != nil {
			t.Fatal(err)
		}
		var first int64
		for i := range 2 {
			before := time.Now()
			r := c.Do(t.Context(), write(), nil)
			e := r.Evidence
			// HTTP/2 may tell that the request was written after the response is there.
			written := e.RequestWritten || strings.HasPrefix(name, "HTTP/2")
			if r.Failure != nil || !e.Traced || !e.Connected || !written || !e.ResponseStarted || e.StatusCode != 200 || r.Outcome != OutcomeAccepted {
				t.Errorf("%s: %+v, %v", name, e, r.err())
			}
			if e.Began.Before(before) || e.Ended.Before(e.Began) || e.Ended.After(time.Now()) {
				t.Errorf("%s: %v to %v", name, e.Began, e.Ended)
			}
			if test.counted != (e.BytesWritten > 0) || !test.counted && e.BytesWritten != -1 {
				t.Errorf("%s: %d bytes", name, e.BytesWritten)
			}
			// A kept connection has written more by then, the request has not.
			if i == 0 {
				first = e.BytesWritten
			} else if e.BytesWritten != first {
				t.Errorf("%s: %d bytes, then %d", name, first, e.BytesWritten)
			}
		}
	}
}

// TestResponseOvertakesTheWriteEvent proves that a write is judged once it is known how
// writing ended, which a response may precede, and in the end without that news.
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

// dead takes so many bytes, and no more.
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

// TestCountedConnection proves that what did not leave is not counted, and that
// this is what makes a write that may be repeated.
func TestCountedConnection(t *testing.T) {
	for _, left := range []int{0, 1, 50} {
		var dials int
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			dials++
			ours, theirs := net.Pipe()
			t.Cleanup(func() { ours.Close(); theirs.Close() })
			return &countedConnection{Conn: &dead{ours, left}}, nil
		}}
		c, err := New(kind(), "http://127.0.0.1", []Option{WithHTTPClient(&http.Client{Transport: transport}), WithRetryWait(0, 0)})
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
