package transport

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// TestBodiesAreClosed proves that no response is left open, whatever it was.
func TestBodiesAreClosed(t *testing.T) {
	for _, code := range []int{101, 200, 204, 302, 304, 400, 401, 429, 503} {
		var open []*body
		network := roundTripper(func(r *http.Request) (*http.Response, error) {
			ended, cancel := context.WithCancel(r.Context())
			cancel()
			resp := reply(code, "", "Location", "https://elsewhere.test/")
			open = append(open, &body{Reader: strings.NewReader("text"), ctx: ended})
			resp.Body = open[len(open)-1]
			return resp, nil
		})
		newClient(t, network, WithRetryWait(0, 0)).get(t.Context())
		for i, b := range open {
			if !b.closed || b.late {
				t.Errorf("status %d: body %d: closed %v, read after that %v", code, i+1, b.closed, b.late)
			}
		}
	}
}

// TestBareResponse proves that a transport of the caller's, a fake for example,
// may leave out what it has no use for.
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

// TestResponseAndError proves that the error counts, and that net/http has no
// reason to complain of it in the log of the process.
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

// TestCorruptIsNotTruncated proves that a body which broke off is asked for again as long
// as any that did not come, and one that cannot be decompressed once.
func TestCorruptIsNotTruncated(t *testing.T) {
	for failed, want := range map[error]int{gzip.ErrHeader: 2, gzip.ErrChecksum: 2, flate.CorruptInputError(1): 2, io.ErrUnexpectedEOF: 4} {
		network := serve(func(*http.Request) (*http.Response, error) {
			resp := reply(200, "")
			resp.Body = io.NopCloser(iotest.ErrReader(failed))
			return resp, nil
		})
		attempts(t, newClient(t, network, WithRetryWait(0, 0)).get(t.Context()), want)
	}
}

// TestAnyResponseCap: none is as good as the largest.
func TestAnyResponseCap(t *testing.T) {
	for _, limit := range []int64{0, 7, 8, math.MaxInt64 - 1, math.MaxInt64} {
		c := newClient(t, serve(func(*http.Request) (*http.Response, error) { return reply(200, "content"), nil }))
		r := c.Do(t.Context(), write(), []Option{WithMaxResponseBytes(limit)})
		if string(r.Body) != "content" || r.BodyErr != nil {
			t.Errorf("%d: %q, %v", limit, r.Body, r.BodyErr)
		}
	}
}

// An endless context names a deadline and never ends.
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
