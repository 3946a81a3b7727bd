package transport

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

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

// TestEmptyBodyIsItsOwn: nothing leads from an empty answer to what was in the
// buffer before.
func TestEmptyBodyIsItsOwn(t *testing.T) {
	bodies := []string{"a card number", ""}
	c := newClient(t, roundTripper(func(*http.Request) (*http.Response, error) {
		body := bodies[0]
		bodies = bodies[1:]
		return reply(200, body), nil
	}))
	call := read()
	call.Decode = func(body []byte) error {
		if len(body) == 0 {
			return io.ErrUnexpectedEOF
		}
		return nil
	}
	c.Do(t.Context(), call, []Option{WithMaxRetries(0)})
	r := c.Do(t.Context(), call, []Option{WithMaxRetries(0)})
	if r.Failure == nil || cap(r.Failure.Body) != 0 {
		t.Errorf("%+v", r.Failure)
	}
}

// An endless context names a deadline and never ends.
type endless struct{ context.Context }

func (endless) Done() <-chan struct{} { return nil }
func (endless) Err() error            { return nil }

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
