package transport

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
)

// quiet is the log of servers that tests attack.
var quiet = log.New(io.Discard, "", 0)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// reply makes a response. header has names and values in turn.
func reply(status int, body string, header ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1}
	for i := 0; i < len(header); i += 2 {
		resp.Header.Set(header[i], header[i+1])
	}
	return resp
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// A service sends its responses in turn, and then repeats the last one. It records the arrival
// and the header of each request. A test whose service changes gives it other responses.
type service struct {
	mu        sync.Mutex
	next      int
	responses []func(*http.Request) (*http.Response, error)
	began     time.Time
	arrived   []time.Duration
	headers   []http.Header
}

func serve(responses ...func(*http.Request) (*http.Response, error)) *service {
	return &service{responses: responses, began: time.Now()}
}

// respond changes the responses to what arrives from now on.
func (s *service) respond(responses ...func(*http.Request) (*http.Response, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.responses, s.next = responses, 0
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	s.mu.Lock()
	s.arrived = append(s.arrived, time.Since(s.began))
	s.headers = append(s.headers, r.Header.Clone())
	response := s.responses[min(s.next, len(s.responses)-1)]
	s.next++
	s.mu.Unlock()
	return response(r)
}

func (s *service) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.arrived)
}

func says(code int, body string, header ...string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return reply(code, body, header...), nil }
}

func status(code int, header ...string) func(*http.Request) (*http.Response, error) {
	return says(code, "", header...)
}

// stall sends no response. It returns when the request's context ends, as net/http does.
func stall(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, context.Cause(r.Context())
}

// testService has the defaults of a lookup.
func testService() Service {
	return Service{Name: "test", Defaults: Settings{
		MaxRetries: 3, WaitBase: 200 * time.Millisecond, WaitMax: 5 * time.Second, AttemptTimeout: 10 * time.Second, ConnectionReuse: time.Minute,
	}}
}

func newClient(t testing.TB, network http.RoundTripper, opts ...Option) *Client {
	t.Helper()
	if network != nil {
		opts = append([]Option{through(network)}, opts...)
	}
	c, err := New(testService(), "https://service.test", opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func read() *Call {
	return &Call{Operation: "read", Method: http.MethodGet, Route: "/{id}", Path: "/1"}
}

func write() *Call {
	return &Call{Operation: "write", Method: http.MethodPost, Route: "/{id}", Path: "/1", Body: []byte("{}"), Write: true}
}

// get makes one read.
func (c *Client) get(ctx context.Context, opts ...Option) Result { return c.do(ctx, read(), opts...) }

// do makes one call with options of its own.
func (c *Client) do(ctx context.Context, call *Call, opts ...Option) Result {
	settings, err := c.Settings(opts)
	if err != nil {
		return refused(call, err)
	}
	return c.Do(ctx, call, settings)
}

// over makes the connections of the library's own transport.
func over(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return through(&Simulation{Dial: dial})
}

// err returns the failure for errors.Is, or nil.
func (r Result) err() error {
	if r.Failure == nil {
		return nil
	}
	return fault.NewError("", fault.Unwrap(r.Failure))
}

// check reports targets that an error does not match.
func check(t *testing.T, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("%v does not match %q", err, target)
		}
	}
}

// attempts compares the number of requests of a call.
func attempts(t *testing.T, r Result, want int) {
	t.Helper()
	if r.Attempts != want {
		t.Errorf("%d attempts, want %d", r.Attempts, want)
	}
}

// through is the option of a client whose network is the caller's.
func through(network http.RoundTripper) Option {
	return WithHTTPClient(&http.Client{Transport: network})
}

// A body delivers a part and then blocks until the request's context ends.
type body struct {
	io.Reader
	ctx context.Context
}

func (b *body) Read(p []byte) (int, error) {
	if n, err := b.Reader.Read(p); err == nil {
		return n, nil
	}
	<-b.ctx.Done()
	return 0, context.Cause(b.ctx)
}

func (b *body) Close() error { return nil }

// stalledBody responds with a body that stalls after a part.
func stalledBody(code int, part string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		resp := reply(code, "")
		resp.Body = &body{Reader: strings.NewReader(part), ctx: r.Context()}
		return resp, nil
	}
}
