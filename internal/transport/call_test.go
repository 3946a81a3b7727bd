package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestEveryRepetitionCarriesTheBody proves that the body is the same in each
// attempt.
func TestEveryRetryCarriesTheBody(t *testing.T) {
	var bodies []string
	network := roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.GetBody != nil {
			t.Error("net/http could send the body again by itself")
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || r.ContentLength != int64(len(body)) {
			t.Errorf("%d of %d bytes, %v", len(body), r.ContentLength, err)
		}
		bodies = append(bodies, string(body))
		r.Body.Close()
		return reply(429, ""), nil
	})
	newClient(t, network, WithRetryWait(0, 0)).Do(t.Context(), write(), nil)
	if got := strings.Join(bodies, ","); got != "{},{},{},{}" {
		t.Error(got)
	}
}

// A refusal does not use up the retry of another.
func TestEachRefusalHasItsRetry(t *testing.T) {
	network := serve(status(421), status(425), status(200))
	if r := newClient(t, network, WithRetryWait(0, 0)).Do(t.Context(), write(), nil); r.err() != nil || r.Attempts != 3 {
		t.Errorf("%v after %d attempts", r.err(), r.Attempts)
	}
}

func TestRequestThatCannotBeBuilt(t *testing.T) {
	r := newClient(t, serve(status(200))).Do(t.Context(), &Call{Method: "BAD METHOD", Path: "/"}, nil)
	check(t, r.err(), ErrInvalidArgument)
}

// TestWire proves that the call's context ends what has not begun, and the wire's
// what has.
func TestWire(t *testing.T) {
	slow := func(code int) func(*http.Request) (*http.Response, error) {
		return func(r *http.Request) (*http.Response, error) {
			select {
			case <-time.After(5 * time.Second):
				return reply(code, "{}"), nil
			case <-r.Context().Done():
				return nil, errors.Join(context.Cause(r.Context()), net.ErrClosed)
			}
		}
	}
	for _, test := range []struct {
		name     string
		response func(*http.Request) (*http.Response, error)
		end, cut time.Duration // of the context and the wire; 0: never
		took     time.Duration
		attempts int
		outcome  Outcome
		is       []error
	}{
		{"response", slow(200), 0, 0, 5 * time.Second, 1, OutcomeAccepted, nil},
		{"response after the end", slow(200), time.Second, 0, 5 * time.Second, 1, OutcomeAccepted, nil},
		{"refused after the end", slow(429), time.Second, 0, 5 * time.Second, 1, OutcomeRejected, []error{ErrRateLimited, context.Canceled}},
		{"rejected after the end", slow(400), time.Second, 0, 5 * time.Second, 1, OutcomeRejected, []error{ErrBadRequest}},
		{"cut after the end", slow(200), time.Second, 3 * time.Second, 3 * time.Second, 1, OutcomeUnknown, []error{context.Canceled, net.ErrClosed}},
		{"timed out after the end", stall, time.Second, 0, 10 * time.Second, 1, OutcomeUnknown, []error{ErrTimeout}},
		{"refused, then ended", slow(429), 6 * time.Second, 0, 10 * time.Second, 2, OutcomeRejected, []error{ErrRateLimited, context.Canceled}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			wire, cut := context.WithCancel(context.WithoutCancel(ctx))
			defer cut()
			for after, do := range map[*time.Duration]func(){&test.end: end, &test.cut: cut} {
				if *after > 0 {
					time.AfterFunc(*after, do)
				}
			}
			network := serve(test.response)
			call := write()
			call.RequestContext = wire
			r := newClient(t, network, WithRetryWait(0, 0)).Do(ctx, call, nil)
			if took := time.Since(network.began); took != test.took || r.Outcome != test.outcome {
				t.Errorf("%s: %v after %v", test.name, r.Outcome, took)
			}
			check(t, r.err(), test.is...)
			if canceled := errors.Is(r.err(), context.Canceled); canceled != slices.Contains(test.is, context.Canceled) {
				t.Errorf("%s: canceled %v, %v", test.name, canceled, r.err())
			}
			attempts(t, r, test.attempts)
		})
	}
}

// TestNothingBeginsAfterTheEnd proves it where a limiter and a token source do not
// look at the context.
func TestNothingBeginsAfterTheEnd(t *testing.T) {
	for name, opt := range map[string]func(end func()) Option{
		"limiter": func(end func()) Option {
			return WithLimiter(limiterFunc(func(context.Context) error { end(); return nil }))
		},
		"source": func(end func()) Option {
			return WithTokenSource(TokenFunc(func(context.Context) (string, error) { end(); return "token", nil }))
		},
	} {
		ctx, end := context.WithCancel(t.Context())
		network := serve(status(200))
		call := write()
		call.RequestContext = context.WithoutCancel(ctx)
		r := newClient(t, network, opt(end)).Do(ctx, call, nil)
		if r.Outcome != OutcomeNotSent || network.requests() != 0 {
			t.Errorf("%s: %v, %d requests", name, r.Outcome, network.requests())
		}
		check(t, r.err(), context.Canceled)
	}
}

// TestCallTimeout proves that a call ends although its caller set no bound, that the
// caller's own bound is left as it is, and that a call which may queue for ever ends
// where nothing else ends its attempts.
func TestCallTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := kind()
		service.CallTimeout = 25 * time.Second
		for _, test := range []struct {
			queues                  bool
			attempt, deadline, took time.Duration
		}{
			{false, 10 * time.Second, 0, 25 * time.Second}, {false, 10 * time.Second, 28 * time.Second, 28 * time.Second},
			{true, 0, 0, 25 * time.Second}, {true, 40 * time.Second, 0, 40 * time.Second}, {true, 0, 50 * time.Second, 50 * time.Second},
		} {
			ctx, call := t.Context(), read() // which is repeated
			if test.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, test.deadline)
				defer cancel()
			}
			if test.queues {
				call = write()
				call.Bulk = true
			}
			network := serve(stall)
			c, err := New(service, "https://service.test", []Option{WithHTTPClient(client(network)), WithRetryWait(0, 0), WithAttemptTimeout(test.attempt)})
			if err != nil {
				t.Fatal(err)
			}
			r := c.Do(ctx, call, nil)
			if took := time.Since(network.began); took != test.took || !test.queues && !errors.Is(r.err(), context.DeadlineExceeded) {
				t.Errorf("%+v: took %v, %v", test, took, r.err())
			}
		}
	})
}

// TestCancelDuringBackoff proves that the call ends at once, and says both that
// the caller ended it and what the service had said.
func TestCancelDuringBackoff(t *testing.T) {
	cause := errors.New("the shop closed")
	for _, test := range []struct {
		name  string
		begin func(context.Context) (context.Context, func())
		is    []error
	}{
		{"canceled", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancel(ctx)
			return ctx, cancel
		}, []error{context.Canceled}},
		{"canceled with a cause", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(cause) }
		}, []error{context.Canceled, cause}},
		{"canceled below a deadline", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			return ctx, cancel
		}, []error{context.Canceled}},
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
					t.Errorf("the last response is lost: %+v", r.Failure)
				}
				if text := Describe("test", r.Failure); !strings.Contains(text, "canceled by the caller (status 503") {
					t.Error(text)
				}
			})
		})
	}
}

// TestCauseOfTheEndIsAnothersError proves that a cause that the caller gave, as errgroup
// gives the error of another call, can be found and is not taken for this call's own.
func TestCauseOfTheEndIsAnothersError(t *testing.T) {
	other := newClient(t, serve(status(403)), WithMaxRetries(0)).get(t.Context()).Failure
	cause := fmt.Errorf("another call: %w", Unwrap(other))
	for want, network := range map[string]*service{"canceled": serve(stall), "server_error": serve(status(503))} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(cause) })
			f := newClient(t, network, WithRetryWait(time.Hour, time.Hour), WithAttemptTimeout(0)).get(ctx).Failure
			check(t, Unwrap(f), context.Canceled, cause, ErrForbidden)
			if f.Condition() != want || !f.Retryable() {
				t.Errorf("%s, retryable %v, want %s", f.Condition(), f.Retryable(), want)
			}
			ended := &Failure{Err: Ended(ctx)}
			if check(t, Unwrap(ended), context.Canceled, cause); ended.Condition() != "canceled" || ended.Response().Header != nil || ended.Outcome() != OutcomeUnknown {
				t.Errorf("%s, %+v, %v", ended.Condition(), ended.Response(), ended.Outcome())
			}
		})
	}
}

// TestResponseAfterTheDeadline proves that the deadline is named where it is what
// ended the call.
func TestResponseAfterTheDeadline(t *testing.T) {
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
		r = newClient(t, roundTripper(func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, context.Canceled })).get(ctx)
		check(t, r.err(), context.DeadlineExceeded)
		if errors.Is(r.err(), ErrTimeout) || errors.Is(r.err(), context.Canceled) {
			t.Errorf("no attempt timed out, and nobody canceled: %v", r.err())
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
		// A 304 has none.
		network, unchanged := serve(stalledBody(304, "x")), streaming()
		for _, unchanged.Stream = range []bool{true, false} {
			unchanged.Conditional = true
			r = newClient(t, network).Do(t.Context(), unchanged, nil)
			if took := time.Since(network.began); r.Failure != nil || r.Stream != nil || len(r.Body) != 0 || took != 0 {
				t.Errorf("stream %v: %q, %v after %v", unchanged.Stream, r.Body, r.err(), took)
			}
		}
	})
}
