package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

func streaming() *Call {
	return &Call{Operation: "download", Method: http.MethodGet, Route: "/{id}", Path: "/1", Stream: true}
}

// paced gives a part after each of its pauses, unless the request's context ends.
type paced struct {
	ctx    context.Context
	pauses []time.Duration
	closed int
}

func (p *paced) Read(b []byte) (int, error) {
	if len(p.pauses) == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(p.pauses[0]):
		p.pauses = p.pauses[1:]
		return copy(b, "part"), nil
	case <-p.ctx.Done():
		return 0, errors.Join(context.Cause(p.ctx), net.ErrClosed)
	}
}

func (p *paced) Close() error { p.closed++; return nil }

// open begins a download whose parts come after pauses.
func open(t *testing.T, ctx context.Context, pauses []time.Duration, opts ...Option) (io.ReadCloser, *paced) {
	t.Helper()
	var b *paced
	c := newClient(t, roundTripper(func(r *http.Request) (*http.Response, error) {
		b = &paced{ctx: r.Context(), pauses: pauses}
		resp := reply(200, "")
		resp.Body = b
		return resp, nil
	}), opts...)
	r := c.Do(ctx, streaming(), nil)
	if r.Failure != nil {
		t.Fatal(r.err())
	}
	return r.Stream, b
}

// TestStalledStream proves that each wait for more is bounded, and the whole is
// not.
func TestStalledStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s, _ := open(t, t.Context(), []time.Duration{9 * time.Second, 9 * time.Second, 9 * time.Second, 9 * time.Second, time.Hour})
		got, err := io.ReadAll(s)
		check(t, err, ErrTimeout)
		if string(got) != "partpartpartpart" || time.Since(began) != 46*time.Second {
			t.Errorf("%q after %v", got, time.Since(began))
		}
		if errors.Is(err, context.Canceled) || errors.Is(err, ErrBadResponse) {
			t.Errorf("a stall is no cancellation: %v", err)
		}
		if n, again := s.Read(make([]byte, 9)); n != 0 || again != err {
			t.Errorf("reading on: %d, %v", n, again)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestSlowReader proves that the caller may take as long as he likes.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := open(t, t.Context(), make([]time.Duration, 5))
		for range 5 {
			time.Sleep(24 * time.Hour)
			if n, err := s.Read(make([]byte, 9)); n != 4 || err != nil {
				t.Fatalf("%d, %v", n, err)
			}
		}
		time.Sleep(24 * time.Hour)
		if _, err := s.Read(make([]byte, 9)); err != io.EOF {
			t.Error(err)
		}
		s.Close()
	})
}

// TestContextEndsStream proves that the caller's context governs the reading.
func TestContextEndsStream(t *testing.T) {
	cause := errors.New("the shop closed")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(cause) })
		began := time.Now()
		s, _ := open(t, ctx, []time.Duration{time.Second, time.Hour})
		got, err := io.ReadAll(s)
		check(t, err, context.Canceled, cause, net.ErrClosed)
		if string(got) != "part" || time.Since(began) != 3*time.Second || errors.Is(err, ErrTimeout) {
			t.Errorf("%q, %v after %v", got, err, time.Since(began))
		}

		bounded, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		s, _ = open(t, bounded, []time.Duration{time.Hour})
		_, err = io.ReadAll(s)
		check(t, err, context.DeadlineExceeded)
	})
}

// TestStreamClose proves that closing ends the request, and may be repeated.
func TestStreamClose(t *testing.T) {
	s, b := open(t, t.Context(), make([]time.Duration, 5))
	if _, err := s.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if b.closed == 0 || b.ctx.Err() == nil {
		t.Error("the request goes on")
	}
	_, err := io.ReadAll(s)
	check(t, err, os.ErrClosed)
	if errors.Is(err, context.Canceled) {
		t.Errorf("the caller's context did not end: %v", err)
	}
}

// TestStreamEndsByEOFAlone proves that what only contains io.EOF is not taken
// for the end by whoever tests with errors.Is.
func TestStreamEndsByEOFAlone(t *testing.T) {
	c := newClient(t, roundTripper(func(*http.Request) (*http.Response, error) {
		resp := reply(200, "")
		resp.Body = unclosable{iotest.ErrReader(fmt.Errorf("tunnel: %w", io.EOF))}
		return resp, nil
	}))
	s := c.Do(t.Context(), streaming(), nil).Stream
	_, err := s.Read(make([]byte, 1))
	check(t, err, ErrBadResponse, io.ErrUnexpectedEOF)
	if errors.Is(err, io.EOF) {
		t.Error(err)
	}
	check(t, s.Close(), io.ErrClosedPipe)
}

type unclosable struct{ io.Reader }

func (unclosable) Close() error { return io.ErrClosedPipe }

func TestStreamCap(t *testing.T) {
	for limit, want := range map[int64]string{1: "p", 4: "part", 6: "partpa", 7: "partpar", 8: "partpart", 9: "partpart", 0: "partpart"} {
		s, _ := open(t, t.Context(), make([]time.Duration, 2), WithMaxResponseBytes(limit))
		got, err := io.ReadAll(s)
		tooLarge := limit > 0 && limit < 8
		if string(got) != want || errors.Is(err, ErrResponseTooLarge) != tooLarge || (err != nil) != tooLarge {
			t.Errorf("limit %d: %q, %v", limit, got, err)
		}
	}
}

// TestStreamRefused proves that only a 200 which can be the content is handed
// over, and that what is not is closed.
func TestStreamRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		resp   *http.Response
		is     error
		status int
	}{
		{"202", reply(202, "{}"), ErrBadResponse, 202}, {"204", reply(204, ""), ErrBadResponse, 204}, {"206", reply(206, "part"), ErrBadResponse, 206},
		{"HTML", reply(200, "<p>", "Content-Type", "text/HTML; charset=x"), ErrBadResponse, 200},
		{"XHTML", reply(200, "<p>", "Content-Type", "application/xhtml+xml"), ErrBadResponse, 200},
		{"encoded", reply(200, "x", "Content-Encoding", "gzip"), ErrBadResponse, 200},
		{"404", reply(404, `{"error":{"code":"no_job","message":"gone","details":{"a":1}}}`), ErrNotFound, 404},
	} {
		content := &body{Reader: test.resp.Body}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		content.ctx, test.resp.Body = ended, content
		r := newClient(t, roundTripper(func(*http.Request) (*http.Response, error) { return test.resp, nil })).Do(t.Context(), streaming(), nil)
		check(t, r.err(), test.is)
		if r.Stream != nil || r.Failure.StatusCode != test.status || !content.closed {
			t.Errorf("%s: %+v", test.name, r)
		}
		if test.status == 404 && (r.Failure.Code != "no_job" || r.Failure.Response().Message != "gone" || string(r.Failure.Response().Details) != `{"a":1}`) {
			t.Errorf("%+v", r.Failure)
		}
	}
	plain := newClient(t, roundTripper(func(*http.Request) (*http.Response, error) {
		return reply(200, "x", "Content-Encoding", "Identity", "Content-Type", "text/csv"), nil
	})).Do(t.Context(), streaming(), nil)
	if plain.Failure != nil || plain.Length != -1 {
		t.Errorf("%+v, %v", plain, plain.err())
	}
	if got, err := io.ReadAll(plain.Stream); !strings.Contains(string(got), "x") || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestPartialContent proves that a 206 is content only for who asked for a part,
// and that what came before counts to the cap.
func TestPartialContent(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int
		call   Call
		limit  int64
		read   string
		is     error
	}{
		{"asked for", 206, Call{Partial: true}, 0, "content", nil},
		{"not asked for", 206, Call{}, 0, "", ErrBadResponse},
		{"beyond the cap", 206, Call{Partial: true, Offset: 3}, 9, "conten", ErrResponseTooLarge},
		{"within the cap", 206, Call{Partial: true, Offset: 3}, 10, "content", nil},
		{"behind the cap", 206, Call{Partial: true, Offset: 30}, 10, "", ErrResponseTooLarge},
		{"the whole instead", 200, Call{Partial: true, Offset: 30}, 10, "content", nil},
	} {
		c := newClient(t, roundTripper(func(*http.Request) (*http.Response, error) { return reply(test.status, "content"), nil }), WithMaxResponseBytes(test.limit))
		test.call.Method, test.call.Path, test.call.Stream = http.MethodGet, "/1", true
		r := c.Do(t.Context(), &test.call, nil)
		var read []byte
		err := r.err()
		if err == nil {
			read, err = io.ReadAll(r.Stream)
			r.Stream.Close()
		}
		if string(read) != test.read || !errors.Is(err, test.is) {
			t.Errorf("%s: %q, %v", test.name, read, err)
		}
	}
}

func TestFramed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*http.Response)
		framed bool
	}{
		"length":  {func(r *http.Response) { r.ContentLength = 0 }, true},
		"chunks":  {func(r *http.Response) { r.TransferEncoding = []string{"chunked"} }, true},
		"HTTP/2":  {func(r *http.Response) { r.ProtoMajor = 2 }, true},
		"neither": {func(r *http.Response) { r.ProtoMajor = 1 }, false},
	} {
		c := newClient(t, roundTripper(func(*http.Request) (*http.Response, error) {
			resp := reply(200, "")
			test.change(resp)
			return resp, nil
		}))
		if r := c.Do(t.Context(), streaming(), []Option{WithMaxRetries(1)}); r.Framed != test.framed || r.Settings.MaxRetries != 1 {
			t.Errorf("%s: framed %v, %d retries", name, r.Framed, r.Settings.MaxRetries)
		}
	}
}

// TestResumeWaits proves that a call which resumes begins with a wait that grows,
// and that nothing is sent if the context ends it.
func TestResumeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(status(404))
		c := newClient(t, s)
		longest := map[int]time.Duration{}
		for range 200 {
			for _, n := range []int{0, 1, 2, 20} {
				began := time.Now()
				c.Do(t.Context(), &Call{Method: http.MethodGet, Path: "/1", Stream: true, Resume: n}, nil)
				longest[n] = max(longest[n], time.Since(began))
			}
		}
		for n, bound := range map[int]time.Duration{0: 0, 1: 200 * time.Millisecond, 2: 400 * time.Millisecond, 20: 5 * time.Second} {
			if got := longest[n]; got > bound || got < bound*8/10 {
				t.Errorf("resume %d waits up to %v, want %v", n, got, bound)
			}
		}
		before := s.requests()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := c.Do(ctx, &Call{Method: http.MethodGet, Path: "/1", Resume: 1}, nil)
		check(t, r.err(), context.Canceled)
		if s.requests() != before || r.Outcome != OutcomeNotSent {
			t.Errorf("%d requests, %v", s.requests()-before, r.Outcome)
		}
	})
}

// wire is a server that reads one request from each connection, responds with
// these bytes, and ends the connection unless hold keeps it.
func wire(t *testing.T, response string, hold <-chan struct{}) (base string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					return
				}
				io.WriteString(c, response)
				if hold != nil {
					<-hold
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// TestTruncatedStream proves on a socket that a content which is too short never
// ends with io.EOF.
func TestTruncatedStream(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\n"
	content := strings.Repeat("0123456789", 20_000)
	for _, test := range []struct {
		name, response, want string
		length               int64
		complete, whole      bool // as far as can be told; all but the end mark
	}{
		{"length, complete", head + "Content-Length: 200000\r\n\r\n" + content, content, 200_000, true, false},
		{"length, cut", head + "Content-Length: 200001\r\n\r\n" + content, content, 200_001, false, false},
		{"length, nothing", head + "Content-Length: 5\r\n\r\n", "", 5, false, false},
		{"chunks, complete", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n", "abcde", -1, true, false},
		{"chunks, no last one", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n", "abcde", -1, false, false},
		{"chunks, one cut", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nabc", "abc", -1, false, false},
		{"chunks, only their end missing", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n", "abcde", -1, false, true},
		{"neither", head + "\r\nabcde", "abcde", -1, true, false},
		{"empty", head + "Content-Length: 0\r\n\r\n", "", 0, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := New(kind(), wire(t, test.response, nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			r := c.Do(t.Context(), streaming(), nil)
			if r.Failure != nil {
				t.Fatal(r.err())
			}
			defer r.Stream.Close()
			got, err := io.ReadAll(r.Stream)
			if string(got) != test.want || r.Length != test.length {
				t.Errorf("%d bytes, length %d", len(got), r.Length)
			}
			if test.complete {
				if err != nil {
					t.Error(err)
				}
				return
			}
			check(t, err, ErrBadResponse)
			if !test.whole {
				check(t, err, io.ErrUnexpectedEOF)
			}
			if errors.Is(err, ErrTimeout) {
				t.Errorf("nothing timed out: %v", err)
			}
			if n, again := r.Stream.Read(make([]byte, 1)); n != 0 || again != err {
				t.Errorf("reading on: %d, %v", n, again)
			}
		})
	}
}
