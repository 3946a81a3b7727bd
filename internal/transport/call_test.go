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

	"github.com/carddata/carddata-go/internal/fault"
)

// The context of a call ends its waits and its further attempts. The context of the request
// ends the attempt on the wire.
func TestRequestContext(t *testing.T) {
	slow := func(code int, header ...string) func(*http.Request) (*http.Response, error) {
		return func(r *http.Request) (*http.Response, error) {
			select {
			case <-time.After(5 * time.Second):
				return reply(code, "{}", header...), nil
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
		outcome  fault.Outcome
		is       []error
	}{
		{"response", slow(200), 0, 0, 5 * time.Second, 1, fault.OutcomeAccepted, nil},
		{"response after the end", slow(200), time.Second, 0, 5 * time.Second, 1, fault.OutcomeAccepted, nil},
		{"refused after the end", slow(429, "RateLimit-Remaining", "0"), time.Second, 0, 5 * time.Second, 1, fault.OutcomeRejected, []error{fault.ErrRateLimited, context.Canceled}},
		{"rejected after the end", slow(400), time.Second, 0, 5 * time.Second, 1, fault.OutcomeRejected, []error{fault.ErrBadRequest}},
		{"cut after the end", slow(200), time.Second, 3 * time.Second, 3 * time.Second, 1, fault.OutcomeUnknown, []error{context.Canceled, net.ErrClosed}},
		{"timed out after the end", stall, time.Second, 0, 10 * time.Second, 1, fault.OutcomeUnknown, []error{fault.ErrTimeout}},
		{"refused, then ended", slow(429, "RateLimit-Remaining", "0"), 6 * time.Second, 0, 10 * time.Second, 2, fault.OutcomeRejected, []error{fault.ErrRateLimited, context.Canceled}},
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

// No attempt begins after the end of the context, even if a limiter ignores the context.
func TestNothingBeginsAfterTheEnd(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	network := serve(status(200))
	call := write()
	call.RequestContext = context.WithoutCancel(ctx)
	r := newClient(t, network, WithLimiter(limiterFunc(func(context.Context) error { end(); return nil }))).Do(ctx, call, nil)
	if check(t, r.err(), context.Canceled); r.Outcome != fault.OutcomeNotSent || network.requests() != 0 {
		t.Errorf("%v, %d requests", r.Outcome, network.requests())
	}
}

// A call without a deadline gets the CallTimeout. A deadline of the caller stays as it is. For
// a bulk call without a deadline, the CallTimeout bounds each attempt.
func TestCallTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := testService()
		service.CallTimeout = 25 * time.Second
		for _, test := range []struct {
			queues                  bool
			attempt, deadline, took time.Duration
		}{
			{false, 10 * time.Second, 0, 25 * time.Second}, {false, 10 * time.Second, 28 * time.Second, 28 * time.Second},
			{true, 0, 0, 25 * time.Second}, {true, 40 * time.Second, 0, 40 * time.Second}, {true, 0, 50 * time.Second, 50 * time.Second},
		} {
			ctx, call := t.Context(), read()
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
			c, err := New(service, "https://service.test", []Option{through(network), WithRetryWait(0, 0), WithAttemptTimeout(test.attempt)})
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

// The caller may give a cause for the end of the context. errgroup gives the error of another
// call. errors.Is finds that cause, but it is not the condition of this call.
func TestCauseOfTheEndIsAnothersError(t *testing.T) {
	other := newClient(t, serve(status(403)), WithMaxRetries(0)).get(t.Context()).Failure
	cause := fmt.Errorf("another call: %w", fault.Unwrap(other))
	for want, network := range map[string]*service{"canceled": serve(stall), "server_error": serve(status(503))} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(cause) })
			f := newClient(t, network, WithRetryWait(time.Hour, time.Hour), WithAttemptTimeout(0)).get(ctx).Failure
			check(t, fault.Unwrap(f), context.Canceled, cause, fault.ErrForbidden)
			if f.Condition() != want || !f.Retryable() {
				t.Errorf("%s, retryable %v, want %s", f.Condition(), f.Retryable(), want)
			}
			ended := &fault.Failure{Err: fault.Ended(ctx)}
			if check(t, fault.Unwrap(ended), context.Canceled, cause); ended.Condition() != "canceled" || ended.Response().Header != nil {
				t.Errorf("%s, %+v", ended.Condition(), ended.Response())
			}
		})
	}
}

// Each attempt has a timeout, and its error differs from that of the caller's own deadline.
func TestAttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := serve(stall)
		r := newClient(t, network, WithRetryWait(0, 0), WithAttemptTimeout(7*time.Second)).get(t.Context())
		check(t, r.err(), fault.ErrTimeout)
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
		if check(t, r.err(), fault.ErrTimeout); errors.Is(r.err(), context.Canceled) {
			t.Errorf("nobody canceled: %v", r.err())
		}

		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r = newClient(t, roundTripper(func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, context.Canceled })).get(ctx)
		check(t, r.err(), context.DeadlineExceeded)
		if errors.Is(r.err(), fault.ErrTimeout) || errors.Is(r.err(), context.Canceled) {
			t.Errorf("no attempt timed out, and nobody canceled: %v", r.err())
		}
	})
}

// The body of an error response cannot delay a call for long.
func TestSlowErrorBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := serve(stalledBody(400, `{"error":{"code":"X"}`))
		r := newClient(t, network).get(t.Context())
		check(t, r.err(), fault.ErrBadRequest)
		if took := time.Since(network.began); took != errorBodyTimeout || r.Failure.StatusCode != 400 {
			t.Errorf("%+v after %v", r.Failure, took)
		}
		network.began = time.Now()
		r = newClient(t, network).get(t.Context(), WithAttemptTimeout(time.Second))
		if took := time.Since(network.began); took != time.Second || r.Failure.StatusCode != 400 {
			t.Errorf("with a shorter attempt timeout: %+v after %v", r.Failure, took)
		}
	})
}

// content is a body that knows whether it is closed.
type content struct {
	io.Reader
	closed bool
}

func (c *content) Close() error { c.closed = true; return nil }

// The body of every response is closed, but for that of a stream, which the caller closes.
func TestBodiesAreClosed(t *testing.T) {
	long := strings.Repeat("x", fault.MaxErrorBody+1)
	limited := func(s *Settings) { s.MaxResponseBytes = 1000 }
	for name, test := range map[string]struct {
		call   *Call
		status int
		body   string
	}{
		"a read":                     {read(), 200, "{}"},
		"a read that is too large":   {read(), 200, long},
		"a write":                    {write(), 201, "{}"},
		"an error":                   {read(), 404, "{}"},
		"a long error":               {write(), 400, long},
		"a redirect":                 {read(), 307, "moved"},
		"an error of a stream":       {streaming(), 404, long},
		"a page in place of content": {streaming(), 200, "<html>" + long},
	} {
		sent := &content{Reader: strings.NewReader(test.body)}
		network := roundTripper(func(*http.Request) (*http.Response, error) {
			resp := reply(test.status, "", "Location", "https://other.test/")
			resp.Body = sent
			return resp, nil
		})
		if r := newClient(t, network, limited).Do(t.Context(), test.call, nil); !sent.closed || r.Stream != nil {
			t.Errorf("%s: the body is open, %v", name, r.err())
		}
	}
}
