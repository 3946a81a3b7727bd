package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Every response is closed, and not read after that.
func TestBodiesAreClosed(t *testing.T) {
	for _, test := range []struct {
		status int
		body   string
		header []string
	}{
		{101, "", nil}, {200, "text", nil}, {202, "{}", nil}, {204, "", nil}, {206, "text", nil}, {302, "", []string{"Location", "https://elsewhere.test/"}},
		{304, "", nil}, {400, "text", nil}, {401, "text", nil}, {429, "text", nil}, {503, "text", nil},
		{200, `{"error":{"code":"a"}}`, nil}, {200, "<p>", []string{"Content-Type", "text/HTML; charset=x"}},
		{200, "<p>", []string{"Content-Type", "application/xhtml+xml"}}, {200, "x", []string{"Content-Encoding", "gzip"}},
	} {
		for _, call := range []*Call{read(), streaming()} {
			var open []*body
			network := roundTripper(func(r *http.Request) (*http.Response, error) {
				ended, cancel := context.WithCancel(r.Context())
				cancel()
				resp := reply(test.status, "", test.header...)
				open = append(open, &body{Reader: strings.NewReader(test.body), ctx: ended})
				resp.Body = open[len(open)-1]
				return resp, nil
			})
			r := newClient(t, network, WithRetryWait(0, 0)).Do(t.Context(), call, nil)
			if r.Stream != nil {
				if r.Stream.Close(); test.body != "text" || test.status != 200 {
					t.Errorf("status %d: %q is handed over as content", test.status, test.body)
				}
			}
			for i, b := range open {
				if !b.closed || b.late {
					t.Errorf("%s, status %d: body %d: closed %v, read after that %v", call.Operation, test.status, i+1, b.closed, b.late)
				}
			}
		}
	}
}

// A transport of the caller, such as a fake, may leave out most of a response.
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

// If a transport returns both a response and an error, the error counts. net/http does not
// complain in the log of the process.
func TestResponseAndError(t *testing.T) {
	var printed bytes.Buffer
	log.SetOutput(&printed)
	defer log.SetOutput(os.Stderr)
	network := roundTripper(func(*http.Request) (*http.Response, error) { return reply(200, "secret"), io.ErrUnexpectedEOF })
	r := newClient(t, network, WithMaxRetries(0)).Do(t.Context(), write(), nil)
	check(t, r.err(), ErrNoResponse, io.ErrUnexpectedEOF)
	if printed.Len() > 0 || r.Outcome != OutcomeUnknown {
		t.Errorf("%v, printed %q", r.Outcome, &printed)
	}
}

func TestAnyResponseCap(t *testing.T) {
	for _, limit := range []int64{0, 7, 8, math.MaxInt64 - 1, math.MaxInt64} {
		c := newClient(t, serve(func(*http.Request) (*http.Response, error) { return reply(200, "content"), nil }))
		r := c.Do(t.Context(), write(), []Option{WithMaxResponseBytes(limit)})
		if string(r.Body) != "content" || r.BodyErr != nil {
			t.Errorf("%d: %q, %v", limit, r.Body, r.BodyErr)
		}
	}
}

// The body of a response that could not be decoded stays as it was while other calls go on.
func TestErrorKeepsItsBody(t *testing.T) {
	const length = 3000
	bad := true
	c := newClient(t, serve(func(*http.Request) (*http.Response, error) {
		return reply(200, strings.Repeat(map[bool]string{true: "A", false: "B"}[bad], length)), nil
	}))
	decode := func([]byte) error {
		if bad {
			return errors.New("not the documented body")
		}
		return nil
	}
	call := func() Result {
		call := read()
		call.Decode = decode
		return c.Do(t.Context(), call, []Option{WithMaxRetries(0)})
	}
	failed := call()
	bad = false
	for range 100 { // a pool may forget what it was given
		call()
	}
	if failed.Failure == nil || string(failed.Body) != strings.Repeat("A", length) {
		t.Errorf("the body became %.20q…", failed.Body)
	}
}

// An endless context has a deadline, but never ends.
type endless struct{ context.Context }

func (endless) Done() <-chan struct{} { return nil }

func (endless) Err() error { return nil }

func TestAttemptTimeoutOfAnEndlessContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		r := newClient(t, serve(stall)).get(endless{ctx}, WithMaxRetries(0), WithAttemptTimeout(3*time.Second))
		if took := time.Since(began); !errors.Is(r.err(), ErrTimeout) || took != 3*time.Second {
			t.Errorf("%v after %v", r.err(), took)
		}
	})
}
