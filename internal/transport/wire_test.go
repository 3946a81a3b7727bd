package transport

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestWire proves that the call's context ends what has not begun, and the wire's
// what has.
func TestWire(t *testing.T) {
	slow := func(code int) func(*http.Request) (*http.Response, error) {
		return func(r *http.Request) (*http.Response, error) {
			select {
			case <-time.After(5 * time.Second):
				return reply(code, "{}"), nil
			case <-r.Context().Done():
				return nil, context.Cause(r.Context())
			}
		}
	}
	for _, test := range []struct {
		name     string
		answer   func(*http.Request) (*http.Response, error)
		end, cut time.Duration // of the context and the wire; 0: never
		took     time.Duration
		attempts int
		outcome  Outcome
		is       []error
	}{
		{"answered", slow(200), 0, 0, 5 * time.Second, 1, OutcomeAccepted, nil},
		{"answered after the end", slow(200), time.Second, 0, 5 * time.Second, 1, OutcomeAccepted, nil},
		{"refused after the end", slow(429), time.Second, 0, 5 * time.Second, 1, OutcomeRejected, []error{ErrRateLimited, context.Canceled}},
		{"rejected after the end", slow(400), time.Second, 0, 5 * time.Second, 1, OutcomeRejected, []error{ErrBadRequest}},
		{"cut after the end", slow(200), time.Second, 3 * time.Second, 3 * time.Second, 1, OutcomeUnknown, []error{context.Canceled}},
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
			network := serve(test.answer)
			call := write()
			call.Wire = wire
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
		call.Wire = context.WithoutCancel(ctx)
		r := newClient(t, network, opt(end)).Do(ctx, call, nil)
		if r.Outcome != OutcomeNotSent || network.requests() != 0 {
			t.Errorf("%s: %v, %d requests", name, r.Outcome, network.requests())
		}
		check(t, r.err(), context.Canceled)
	}
}

// TestPatientCallIsBounded proves that a call which may queue for ever ends where
// nothing else ends its attempts.
func TestPatientCallIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := kind()
		service.CallTimeout = 25 * time.Second
		for _, test := range []struct {
			attempt, deadline, took time.Duration
		}{{0, 0, 25 * time.Second}, {40 * time.Second, 0, 40 * time.Second}, {0, 50 * time.Second, 50 * time.Second}} {
			ctx := t.Context()
			if test.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, test.deadline)
				defer cancel()
			}
			network := serve(stall)
			c, err := New(service, "https://service.test", []Option{WithHTTPClient(client(network)), WithAttemptTimeout(test.attempt)})
			if err != nil {
				t.Fatal(err)
			}
			call := write()
			call.Patient = true
			c.Do(ctx, call, nil)
			if took := time.Since(network.began); took != test.took {
				t.Errorf("%+v: took %v", test, took)
			}
		}
	})
}
