package transport

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/auth"
	"github.com/carddata/carddata-go/internal/fault"
)

// A suspended context is a context on a machine that sleeps. Its deadline passes by the wall
// clock, but its timer does not fire.
type suspended struct {
	context.Context
	deadline time.Time
}

func (s suspended) Deadline() (time.Time, bool) { return s.deadline.Round(0), true }

// No byte of a write leaves after its deadline, by the monotonic or the wall clock.
func TestNothingLeavesAfterTheDeadline(t *testing.T) {
	sleep := func() { time.Sleep(20 * time.Second) }
	wrap := around(func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
		sleep()
		return base.RoundTrip(r)
	})
	for name, test := range map[string]struct {
		option Option
		dial   func()
		before time.Duration // of the call
	}{
		"before the call":     {WithUserAgent(""), func() {}, 20 * time.Second},
		"in the token source": {WithTokenSource(auth.Func(func(context.Context) (string, error) { sleep(); return "t", nil })), func() {}, 0},
		"in the limiter":      {WithLimiter(limiterFunc(func(context.Context) error { sleep(); return nil })), func() {}, 0},
		"in a wrapper":        {wrap, func() {}, 0},
		"while it connects":   {WithUserAgent(""), sleep, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{onDial: test.dial}
			c := p.client(t, test.option, WithAttemptTimeout(time.Hour))
			ctx := suspended{t.Context(), time.Now().Add(10 * time.Second)}
			time.Sleep(test.before)
			r := c.Do(ctx, write(), nil)
			check(t, r.err(), context.DeadlineExceeded)
			if r.Outcome != fault.OutcomeNotSent || p.requests.Load() != 0 || r.Attempts > 1 {
				t.Errorf("%s: %v, %d arrived, %d attempts: %v", name, r.Outcome, p.requests.Load(), r.Attempts, r.err())
			}
			if r := c.do(t.Context(), write(), WithLimiter(nil)); r.Outcome != fault.OutcomeAccepted {
				t.Errorf("%s: with time: %v", name, r.err())
			}
			time.Sleep(time.Minute)
		})
	}
}

// A transport of the caller gets no write after its deadline, by the wall clock.
func TestTransportOfTheCallerGetsNoLateWrite(t *testing.T) {
	got := 0
	c := newClient(t, roundTripper(func(*http.Request) (*http.Response, error) { got++; return reply(200, ""), nil }))
	r := c.Do(suspended{t.Context(), time.Now().Add(-time.Second)}, write(), nil)
	if check(t, r.err(), context.DeadlineExceeded); r.Outcome != fault.OutcomeNotSent || got != 0 {
		t.Errorf("%v, %d sent: %v", r.Outcome, got, r.err())
	}
}
