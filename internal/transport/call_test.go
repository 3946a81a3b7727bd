package transport

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestCancelDuringBackoff proves that the call ends at once, and says both that
// the caller ended it and what the service had answered.
func TestCancelDuringBackoff(t *testing.T) {
	cause := errors.New("the shop closed")
	for _, test := range []struct {
		name  string
		begin func(context.Context) (context.Context, func())
		is    []error
		words string
	}{
		{"canceled", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancel(ctx)
			return ctx, cancel
		}, []error{context.Canceled}, "canceled by the caller"},
		{"canceled with a cause", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(cause) }
		}, []error{context.Canceled, cause}, "canceled by the caller"},
		{"canceled below a deadline", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			return ctx, cancel
		}, []error{context.Canceled}, "canceled by the caller"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := test.begin(t.Context())
				time.AfterFunc(3*time.Second, cancel)
				network := serve(status(503, "Retry-After", "30", "X-Request-Id", "req-1"))
				r := newClient(t, network).get(ctx)
				if took := time.Since(network.began); took != 3*time.Second {
					t.Errorf("took %v", took)
				}
				check(t, r.err(), append(test.is, ErrServer)...)
				attempts(t, r, 1)
				if r.Failure.StatusCode != 503 || r.Failure.RequestID != "req-1" || r.Failure.RetryAfter != 30*time.Second {
					t.Errorf("the last answer is lost: %+v", r.Failure)
				}
				if text := Describe("test", r.Failure); !strings.Contains(text, test.words) || !strings.Contains(text, "503") {
					t.Error(text)
				}
			})
		})
	}
}

// TestContextThatEndsWithTheAnswer proves that a call which was to be repeated
// and cannot be says so, and that any other keeps its answer alone.
func TestContextThatEndsWithTheAnswer(t *testing.T) {
	for code, canceled := range map[int]bool{503: true, 400: false} {
		ctx, cancel := context.WithCancel(t.Context())
		network := serve(status(code))
		c := newClient(t, network, WithHeader("X-A", "b"))
		c.roundTrip = roundTripper(network.RoundTrip).andThen(cancel).RoundTrip
		r := c.get(ctx)
		if errors.Is(r.err(), context.Canceled) != canceled || r.Failure.StatusCode != code {
			t.Errorf("%d: %v", code, r.err())
		}
	}
}

// TestAnswerAfterTheDeadline proves that the deadline is named where it is what
// ended the call.
func TestAnswerAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		late := func(*http.Request) (*http.Response, error) {
			time.Sleep(3 * time.Second)
			return reply(503, ""), nil
		}
		check(t, newClient(t, serve(late)).get(ctx).err(), context.DeadlineExceeded, ErrServer)
	})
}

// TestAttemptTimeout proves that each attempt is bounded, and is told from the
// caller's own deadline.
func TestAttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := serve(stall)
		r := newClient(t, network, WithRetryWait(0, 0), WithAttemptTimeout(7*time.Second)).get(t.Context())
		check(t, r.err(), ErrTimeout)
		if errors.Is(r.err(), context.DeadlineExceeded) || errors.Is(r.err(), context.Canceled) {
			t.Errorf("the caller's context did not end: %v", r.err())
		}
		attempts(t, r, 3)
		if took := time.Since(network.began); took != 21*time.Second {
			t.Errorf("took %v", took)
		}

		simple := roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		r = newClient(t, simple).get(t.Context())
		if check(t, r.err(), ErrTimeout); errors.Is(r.err(), context.Canceled) {
			t.Errorf("nobody canceled: %v", r.err())
		}

		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r = newClient(t, serve(stall)).get(ctx)
		check(t, r.err(), context.DeadlineExceeded)
		if errors.Is(r.err(), ErrTimeout) {
			t.Errorf("no attempt timed out: %v", r.err())
		}

		// Without a bound of the attempt, the caller's deadline is the only one.
		ctx, cancel = context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		network = serve(stall)
		r = newClient(t, network, WithAttemptTimeout(0)).get(ctx)
		check(t, r.err(), context.DeadlineExceeded)
		if took := time.Since(network.began); took != time.Hour || r.Attempts != 1 {
			t.Errorf("%d attempts in %v", r.Attempts, took)
		}
	})
}

// TestCallTimeout proves that a call ends although its caller set no bound, and
// that the caller's own bound is left as it is.
func TestCallTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := kind()
		service.CallTimeout = 25 * time.Second
		network := serve(stall)
		c, err := New(service, "https://service.test", []Option{WithHTTPClient(client(network)), WithRetryWait(0, 0)})
		if err != nil {
			t.Fatal(err)
		}
		check(t, c.get(t.Context()).err(), context.DeadlineExceeded)
		if took := time.Since(network.began); took != 25*time.Second {
			t.Errorf("took %v", took)
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 28*time.Second)
		defer cancel()
		c.get(ctx)
		if took := time.Since(began); took != 28*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// TestSlowErrorBody proves that the body of an error cannot hold a call up.
func TestSlowErrorBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := serve(stalledBody(400, `{"error":{"code":"X"}`))
		r := newClient(t, network).get(t.Context())
		check(t, r.err(), ErrBadRequest)
		if took := time.Since(network.began); took != errorBodyTimeout || r.Failure.StatusCode != 400 {
			t.Errorf("%+v after %v", r.Failure, took)
		}
	})
}
