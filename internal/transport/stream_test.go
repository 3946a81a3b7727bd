package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
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
		return 0, context.Cause(p.ctx)
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

func TestStreamWithoutTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := open(t, t.Context(), []time.Duration{1000 * time.Hour}, WithAttemptTimeout(0))
		if got, err := io.ReadAll(s); string(got) != "part" || err != nil {
			t.Errorf("%q, %v", got, err)
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
		check(t, err, context.Canceled, cause)
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
		resp.Body = io.NopCloser(iotest.ErrReader(fmt.Errorf("tunnel: %w", io.EOF)))
		return resp, nil
	}))
	s := c.Do(t.Context(), streaming(), nil).Stream
	defer s.Close()
	_, err := s.Read(make([]byte, 1))
	check(t, err, ErrBadResponse, io.ErrUnexpectedEOF)
	if errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

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
		if test.status == 404 && (r.Failure.Code != "no_job" || r.Failure.Message != "gone" || string(r.Failure.Details) != `{"a":1}`) {
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
