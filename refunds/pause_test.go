package refunds_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/refunds"
)

// In a pause, a Submit that is the probe sends one request: its retries wait for the next probe
// like all others.
func TestProbeIsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{status: func(string) int { return http.StatusTooManyRequests }}
		client := s.client(t, refunds.WithMaxRetries(3))
		pause(t, client)
		probes := 0
		for range 10 * 60 {
			before := len(s.sent())
			_, err := client.Submit(t.Context(), "acct-1", record())
			switch n := len(s.sent()) - before; {
			case !errors.Is(err, refunds.ErrSuspended):
				t.Errorf("%d requests: %v", n, err)
			case n > 1:
				t.Errorf("one Submit sent %d requests in the pause", n)
			default:
				probes += n
			}
			time.Sleep(100 * time.Millisecond)
		}
		if probes < 4 || probes > 7 {
			t.Errorf("%d probes in a minute", probes)
		}
	})
}

// A function of the caller that panics before the record is sent says nothing of the service: it
// ends no pause.
func TestPanicBeforeSendingEndsNoPause(t *testing.T) {
	fail := func(context.Context) error { panic("on purpose") }
	token := func(ctx context.Context) (string, error) { return "", fail(ctx) }
	for name, option := range map[string]refunds.Option{
		"BeforeSend":   refunds.WithBeforeSend(fail),
		"limiter":      refunds.WithLimiter(limiterFunc(fail)),
		"token source": refunds.WithTokenSource(refunds.TokenFunc(token)),
	} {
		for _, bulk := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := &service{status: func(string) int { return http.StatusServiceUnavailable }}
				client := s.client(t)
				pause(t, client)
				time.Sleep(time.Minute) // the probe is due
				sent := len(s.sent())
				func() {
					defer func() {
						if recover() == nil {
							t.Errorf("%s: no panic", name)
						}
					}()
					if bulk {
						count(t, client, with(numbered(1), "", option), refunds.BulkOptions{})
					} else {
						client.Submit(t.Context(), "acct-1", record(), option)
					}
				}()
				_, err := client.Submit(t.Context(), "acct-1", record())
				if n := len(s.sent()) - sent; n > 0 || !errors.Is(err, refunds.ErrSuspended) {
					t.Errorf("%s, bulk %t: %d requests after the panic: %v", name, bulk, n, err)
				}
			})
		}
	}
}

// pause submits until the client pauses.
func pause(t *testing.T, client *refunds.Client) {
	t.Helper()
	for range 10 {
		if _, err := client.Submit(t.Context(), "acct-1", record()); errors.Is(err, refunds.ErrSuspended) {
			return
		}
	}
	t.Fatal("no pause")
}
