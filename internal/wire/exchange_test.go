package wire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/carddata/carddata-go/internal/sandbox/memnet"
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
	own, err := New(Config{Reuse: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		base    string
		network Network
		counted bool
	}{
		"library's": {plain.URL, own, true}, "caller's": {plain.URL, OfCaller(plain.Client().Transport), false},
		"HTTP/2": {second.URL, OfCaller(second.Client().Transport), false},
	} {
		first, _ := post(t, test.network, test.base)
		e, err := post(t, test.network, test.base)
		// With HTTP/2, the event that the request was written may come after the response.
		written := e.RequestWritten || name == "HTTP/2"
		if err != nil || !e.Traced || !e.Connected || !written || !e.ResponseStarted {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
		// The count of the second request leaves out the bytes of the first.
		if test.counted != (e.BytesWritten > 0) || !test.counted && e.BytesWritten != -1 || e.BytesWritten != first.BytesWritten {
			t.Errorf("%s: %d bytes, then %d", name, first.BytesWritten, e.BytesWritten)
		}
	}
}

// post makes a write.
func post(t *testing.T, n Network, url string) (Evidence, error) {
	t.Helper()
	x := NewExchange(true, []byte("{}"))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, x.newBody())
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = int64(len(x.body))
	resp, err := n.Send(req, &x)
	if err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		x.AwaitWrite(t.Context())
	}
	return x.Evidence(), err
}

// No byte leaves on a connection that has ended, or after the attempt that asked for it.
func TestSpoiltConnectionTakesNoByte(t *testing.T) {
	for name, spoil := range map[string]func(*countedConnection){
		"closed": func(c *countedConnection) { c.state.Store(waiting); c.Close() },
		"after the attempt": func(c *countedConnection) {
			var trace connTrace
			trace.leave()
			httptrace.ContextClientTrace(trace.withTrace(t.Context())).GotConn(httptrace.GotConnInfo{Conn: c})
		},
	} {
		ours, theirs := net.Pipe()
		go io.Copy(io.Discard, theirs)
		c := &countedConnection{Conn: ours}
		spoil(c)
		if n, err := c.Write([]byte("POST")); n != 0 || err != errSpoilt || c.BytesWritten() != 0 {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
		theirs.Close()
	}
}

// No byte leaves after the deadline, by either clock: while the machine is suspended, only the wall
// clock goes on, and timers do not fire. Somebody may also set the wall clock back.
func TestDeadlineByEitherClock(t *testing.T) {
	// later returns a time that is later by the monotonic clock alone, for which package time has
	// no function: its second word counts by that clock.
	later := func(at time.Time, by time.Duration) time.Time {
		(*(*[2]int64)(unsafe.Pointer(&at)))[1] += int64(by)
		return at
	}
	now := time.Now()
	for name, test := range map[string]struct {
		deadline time.Time
		passed   bool
	}{
		"none":                        {time.Time{}, false},
		"to come":                     {now.Add(time.Hour), false},
		"past":                        {now.Add(-time.Hour), true},
		"past by the wall clock":      {later(now.Add(-time.Hour), 2*time.Hour), true},
		"past by the monotonic clock": {later(now.Add(time.Hour), -2*time.Hour), true},
		"without a monotonic clock":   {now.Add(-time.Hour).Round(0), true},
	} {
		ours, theirs := net.Pipe()
		go io.Copy(io.Discard, theirs)
		c := &countedConnection{Conn: ours}
		c.state.Store(waiting)
		c.user.Store(&connTrace{deadline: test.deadline})
		if n, err := c.Write([]byte("POST")); (n == 0) != test.passed || errors.Is(err, context.DeadlineExceeded) != test.passed {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
		theirs.Close()
	}
}

// A response that began before the first byte of the request left is about something else,
// whatever it says. An acceptance also has to come after the whole request.
func TestEarlyResponse(t *testing.T) {
	for _, test := range []struct {
		before, after int64 // bytes that leave before the response begins, and afterwards
		whole, early  bool
	}{
		{0, 100, false, true}, {0, 100, true, true}, {100, 0, false, false}, {100, 0, true, false}, {40, 0, false, false}, {40, 0, true, true},
	} {
		x := NewExchange(true, make([]byte, 80))
		conn, trace := new(countedConnection), httptrace.ContextClientTrace(x.trace.withTrace(t.Context()))
		trace.GetConn("service.test:443")
		trace.GotConn(httptrace.GotConnInfo{Conn: conn})
		conn.written.Add(test.before)
		trace.GotFirstResponseByte()
		conn.written.Add(test.after)
		trace.GotFirstResponseByte() // again, after an interim response
		trace.WroteRequest(httptrace.WroteRequestInfo{})
		if early := x.CameEarly(x.Evidence(), test.whole); early != test.early {
			t.Errorf("%+v: %t", test, early)
		}
	}
}

// The other side may close a connection that was dialled ahead before a write could take it.
// No write uses it then.
func TestAheadEndsAsItIsDialled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := memnet.Listen()
		defer listener.Close()
		var waiting sync.Map // connections without a request
		go func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				waiting.Store(c, true)
				go func() {
					defer c.Close()
					if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
						waiting.Delete(c)
						io.Copy(io.Discard, r.Body)
						time.Sleep(30 * time.Millisecond)
						io.WriteString(c, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")
					}
				}()
			}
		}()
		transport := newTransport(Config{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.Dial(ctx) }})
		dial, ended := transport.DialContext, atomic.Int64{}
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if d := ctx.Value(dialKey{}).(*dialling); err == nil && d.lost != nil {
				synctest.Wait() // the other side has accepted it
				waiting.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true })
				_, _ = conn.Read(make([]byte, 1)) // as net/http does once it has the connection
				ended.Add(1)
			}
			return conn, err
		}
		n := direct(transport, newAhead(transport))
		for range 10 {
			if e, err := post(t, n, "http://127.0.0.1"); err != nil || !e.RequestWritten {
				t.Fatalf("%v, %+v", err, e)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := ended.Load(); n != 1 { // then it is quiet
			t.Errorf("%d connections were dialled ahead", n)
		}
		time.Sleep(2 * time.Second)
	})
}
