package transport

import (
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

	"github.com/carddata/carddata-go/internal/fault"
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

// open begins a download that sends its parts after pauses.
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

// Each wait for a part of a stream has a timeout. The whole stream has none.
func TestStalledStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s, _ := open(t, t.Context(), []time.Duration{9 * time.Second, 9 * time.Second, 9 * time.Second, 9 * time.Second, time.Hour})
		got, err := io.ReadAll(s)
		check(t, err, fault.ErrTimeout)
		if string(got) != "partpartpartpart" || time.Since(began) != 46*time.Second {
			t.Errorf("%q after %v", got, time.Since(began))
		}
		if errors.Is(err, context.Canceled) || errors.Is(err, fault.ErrBadResponse) {
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

// A slow reader causes no timeout.
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

// The caller's context ends the reading.
func TestContextEndsStream(t *testing.T) {
	cause := errors.New("the shop closed")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(cause) })
		began := time.Now()
		s, _ := open(t, ctx, []time.Duration{time.Second, time.Hour})
		got, err := io.ReadAll(s)
		check(t, err, context.Canceled, cause, net.ErrClosed)
		if string(got) != "part" || time.Since(began) != 3*time.Second || errors.Is(err, fault.ErrTimeout) {
			t.Errorf("%q, %v after %v", got, err, time.Since(began))
		}

		bounded, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		s, _ = open(t, bounded, []time.Duration{time.Hour})
		_, err = io.ReadAll(s)
		check(t, err, context.DeadlineExceeded)

		// The end also comes before bytes that have already arrived.
		ctx, end := context.WithCancel(t.Context())
		arrived := newClient(t, serve(says(200, "content"))).Do(ctx, streaming(), nil)
		end()
		if n, err := arrived.Stream.Read(make([]byte, 9)); n != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("%d bytes, %v", n, err)
		}
		arrived.Stream.Close()
	})
}

// Close ends the request. Reading on says that the caller closed the stream.
func TestStreamClose(t *testing.T) {
	s, b := open(t, t.Context(), make([]time.Duration, 5))
	if err := s.Close(); err != nil || b.closed == 0 || b.ctx.Err() == nil {
		t.Errorf("the request goes on: %v", err)
	}
	_, err := io.ReadAll(s)
	if check(t, err, os.ErrClosed); errors.Is(err, context.Canceled) {
		t.Errorf("the caller's context did not end: %v", err)
	}
}

// The error of a broken stream does not match io.EOF, even if it wraps io.EOF.
func TestStreamEndsByEOFAlone(t *testing.T) {
	c := newClient(t, roundTripper(func(*http.Request) (*http.Response, error) {
		resp := reply(200, "")
		resp.Body = unclosable{iotest.ErrReader(fmt.Errorf("tunnel: %w", io.EOF))}
		return resp, nil
	}))
	s := c.Do(t.Context(), streaming(), nil).Stream
	_, err := s.Read(make([]byte, 1))
	check(t, err, fault.ErrBadResponse, io.ErrUnexpectedEOF)
	if errors.Is(err, io.EOF) {
		t.Error(err)
	}
	check(t, s.Close(), io.ErrClosedPipe)
}

// A download that breaks off within its first bytes is a page only if an element of one arrived.
func TestBrokenBeginOfDownload(t *testing.T) {
	cut := errors.New("reset")
	for begin, page := range map[string]bool{
		"<html>": true, "<!DOCTYPE html>": true, "<!-- a --><head>": true, "<ht": false, "<": false, "<!-- of": false, "<!DOCTYPE h": false, "<ok/>": false, "": false, "a,b": false,
	} {
		network := serve(func(*http.Request) (*http.Response, error) {
			resp := reply(200, "", "Content-Type", "text/csv")
			resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(begin), iotest.ErrReader(cut)))
			return resp, nil
		})
		r := newClient(t, network).Do(t.Context(), streaming(), nil)
		if page != (r.Failure != nil) {
			t.Errorf("%q: %v", begin, r.err())
		}
		if r.Failure != nil {
			continue
		}
		got, err := io.ReadAll(r.Stream)
		if r.Stream.Close(); string(got) != begin || !errors.Is(err, fault.ErrBadResponse) || !errors.Is(err, cut) {
			t.Errorf("%q: read %q, %v", begin, got, err)
		}
	}
}

// A wrapper's body may go on after a read that failed. What comes then is no content, even if the
// error came before the first byte.
func TestStreamEndsByItsFirstError(t *testing.T) {
	for name, begin := range map[string]string{"at once": "", "in the content": "con", "in what may be a page": "<!"} {
		c := newClient(t, roundTripper(func(*http.Request) (*http.Response, error) {
			resp := reply(200, "")
			resp.Body = unclosable{io.MultiReader(strings.NewReader(begin), &once{err: net.ErrClosed}, strings.NewReader("<html>"))}
			return resp, nil
		}))
		r := c.Do(t.Context(), streaming(), nil)
		if r.Failure != nil {
			t.Fatal(name, r.err())
		}
		if content, err := io.ReadAll(r.Stream); !errors.Is(err, net.ErrClosed) || string(content) != begin {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
}

// once fails once, and has nothing to read.
type once struct{ err error }

func (o *once) Read([]byte) (int, error) {
	err := o.err
	o.err = io.EOF
	return 0, err
}

type unclosable struct{ io.Reader }

func (unclosable) Close() error { return io.ErrClosedPipe }

func TestFramed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*http.Response)
		framed bool
	}{
		"length":               {func(r *http.Response) { r.ContentLength = 0 }, true},
		"chunks":               {func(r *http.Response) { r.TransferEncoding = []string{"chunked"} }, true},
		"HTTP/2":               {func(r *http.Response) { r.ProtoMajor = 2 }, true},
		"an identity encoding": {func(r *http.Response) { r.ContentLength = 0; r.Header.Set("Content-Encoding", "Identity") }, true},
		"neither":              {func(r *http.Response) { r.ProtoMajor = 1 }, false},
	} {
		c := newClient(t, roundTripper(func(*http.Request) (*http.Response, error) {
			resp := reply(200, "")
			test.change(resp)
			return resp, nil
		}))
		if r := c.Do(t.Context(), streaming(), nil); r.Framed != test.framed {
			t.Errorf("%s: framed %v", name, r.Framed)
		}
	}
}

// A call that resumes a stream begins with a wait, which grows with each resume.
func TestResumeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, serve(status(404)))
		for n, bound := range map[int]time.Duration{0: 0, 1: 200 * time.Millisecond, 2: 400 * time.Millisecond, 20: 5 * time.Second} {
			_, longest := spread(func() time.Duration {
				began := time.Now()
				c.Do(t.Context(), &Call{Method: http.MethodGet, Path: "/1", Stream: true, Resume: n}, nil)
				return time.Since(began)
			})
			if longest > bound || longest < bound*8/10 {
				t.Errorf("resume %d waits up to %v, want %v", n, longest, bound)
			}
		}
	})
}
