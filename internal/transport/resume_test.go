package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

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
		"length":       {func(r *http.Response) { r.ContentLength = 0 }, true},
		"chunks":       {func(r *http.Response) { r.TransferEncoding = []string{"chunked"} }, true},
		"HTTP/2":       {func(r *http.Response) { r.ProtoMajor = 2 }, true},
		"neither":      {func(r *http.Response) { r.ProtoMajor = 1 }, false},
		"not repeated": {func(r *http.Response) {}, false},
	} {
		c := newClient(t, roundTripper(func(*http.Request) (*http.Response, error) {
			resp := reply(200, "")
			test.change(resp)
			return resp, nil
		}))
		repeats := name != "not repeated"
		opts := []Option{WithMaxRetries(1)}
		if !repeats {
			opts = []Option{WithMaxRetries(0)}
		}
		if r := c.Do(t.Context(), streaming(), opts); r.Framed != test.framed || r.Repeats != repeats {
			t.Errorf("%s: framed %v, repeats %v", name, r.Framed, r.Repeats)
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

func TestFingerprint(t *testing.T) {
	a, b := newClient(t, nil), newClient(t, nil)
	if a.Fingerprint("/1") != b.Fingerprint("/1") || a.Fingerprint("/1") == a.Fingerprint("/2") {
		t.Error("an address is not told by its fingerprint")
	}
}
