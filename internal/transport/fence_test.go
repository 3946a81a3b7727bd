package transport

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox/memnet"
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
	wrap := WithTransport(func(base http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { sleep(); return base.RoundTrip(r) })
	})
	for name, test := range map[string]struct {
		option Option
		dial   func()
		before time.Duration // of the call
	}{
		"before the call":     {WithUserAgent(""), func() {}, 20 * time.Second},
		"in the token source": {WithTokenSource(TokenFunc(func(context.Context) (string, error) { sleep(); return "t", nil })), func() {}, 0},
		"in the limiter":      {WithLimiter(limited{sleep}), func() {}, 0},
		"in a wrapper":        {wrap, func() {}, 0},
		"while it connects":   {WithUserAgent(""), sleep, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			listener, arrived := memnet.Listen(), 0
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { arrived++; io.Copy(io.Discard, r.Body) })}
			go server.Serve(listener)
			c, err := New(testService(), "http://127.0.0.1", []Option{test.option, WithAttemptTimeout(time.Hour), WithDial(func(ctx context.Context, _, _ string) (net.Conn, error) {
				test.dial()
				return listener.Dial(ctx)
			})})
			if err != nil {
				t.Fatal(err)
			}
			ctx := suspended{t.Context(), time.Now().Add(10 * time.Second)}
			time.Sleep(test.before)
			r := c.Do(ctx, write(), nil)
			check(t, r.err(), context.DeadlineExceeded)
			if r.Outcome != OutcomeNotSent || arrived != 0 || r.Attempts > 1 {
				t.Errorf("%s: %v, %d arrived, %d attempts: %v", name, r.Outcome, arrived, r.Attempts, r.err())
			}
			if r := c.Do(t.Context(), write(), []Option{WithLimiter(nil)}); r.Outcome != OutcomeAccepted {
				t.Errorf("%s: with time: %v", name, r.err())
			}
			server.Close()
			time.Sleep(time.Minute)
		})
	}
}
