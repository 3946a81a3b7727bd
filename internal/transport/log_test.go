package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/auth"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/flow"
)

// The complete log of a call.
func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		untimed := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			if a.Value.Kind() == slog.KindTime { // the machine may be in any time zone
				a.Value = slog.TimeValue(a.Value.Time().UTC())
			}
			return a
		}
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: untimed}))
		network := serve(status(429, "Retry-After", "2", "X-Request-Id", "r-1"), status(200, "X-Request-Id", "4111111111111111"))
		call := write()
		call.Path = "/secret"
		c := newClient(t, network, WithRetryWait(0, 0), WithLogger(logger), WithTokenSource(auth.Static("secret")), WithHeader("X-A", "secret"),
			WithLimiter(limiterFunc(func(context.Context) error { time.Sleep(3 * time.Second); return nil })))
		c.Do(t.Context(), call, nil)
		newClient(t, serve(status(400)), WithLogger(logger)).get(t.Context())
		const about = ` service=test operation=write route="POST /{id}" `
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		for i, want := range []string{
			"level=DEBUG msg=attempt" + about + "attempt=1 status=429 result=refused condition=rate_limited request_id=r-1 queued=3s duration=0s",
			"level=INFO msg=retry" + about + "attempt=1 status=429 result=refused condition=rate_limited request_id=r-1 wait=2.",
			"level=DEBUG msg=attempt" + about + "attempt=2 status=200 result=success queued=3s duration=0s",
			"level=DEBUG msg=call" + about + "attempts=2 status=200 result=success duration=8.",
			"level=DEBUG msg=attempt service=test operation=read",
			"level=INFO msg=call service=test operation=read",
		} {
			if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
				t.Fatalf("line %d is not %q in\n%s", i+1, want, &log)
			}
		}
		if len(lines) != 6 || strings.Contains(log.String(), "secret") || strings.Contains(log.String(), "41111111") {
			t.Error(log.String())
		}
		if !strings.HasSuffix(lines[3], "s queued=6s outcome=accepted") || !strings.Contains(lines[5], "result=refused condition=bad_request") {
			t.Error(log.String())
		}
	})
}

// A pause is logged once, even if many calls are refused together, and its end is logged once.
// A retry that is not made is not logged. The log has the same condition as the error.
func TestLogOfAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		refuse := func(*http.Request) (*http.Response, error) {
			time.Sleep(rand.N(100 * time.Millisecond))
			return reply(503, "", "Retry-After", "2"), nil
		}
		c := newClient(t, serve(refuse, refuse, refuse, status(200)), WithLogger(logger))
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				if r := c.get(ctx); !errors.Is(r.err(), context.Canceled) || r.Failure.Condition() != "server_error" {
					t.Errorf("refused: %v, %s", r.err(), r.Failure.Condition())
				}
			})
		}
		calls.Wait()
		// The pause has a second left.
		canceled, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/2, cancel)
		r := c.get(canceled)
		check(t, r.err(), fault.ErrRateLimited, context.Canceled)
		if left := r.Failure.RetryAfter; r.Failure.Condition() != "rate_limited" || left <= 0 || left > 1200*time.Millisecond || r.Attempts != 0 {
			t.Errorf("in the pause: %v, %s, %v", r.err(), r.Failure.Condition(), left)
		}
		for range 3 {
			if r := c.get(t.Context()); r.Failure != nil {
				t.Error(r.err())
			}
		}
		for words, want := range map[string]int{"msg=pause": 1, "msg=resume": 1, "msg=retry": 0, "msg=call": 4, "condition=rate_limited": 1, "condition=server_error": 4, "condition=canceled": 0} {
			if got := strings.Count(log.String(), words); got != want {
				t.Errorf("%d times %q, want %d", got, words, want)
			}
		}
	})
}

// The event of a call says if its attempts have waited for more than a second. While the service is down, calls
// are no events to count.
func TestLogOfAWait(t *testing.T) {
	for _, test := range []struct {
		wait time.Duration
		down error
		want string
	}{
		{time.Second, nil, "level=DEBUG msg=call service=test operation=write route=\"POST /{id}\" attempts=1 status=200 result=success duration=1s outcome=accepted\n"},
		{2 * time.Second, nil, "level=DEBUG msg=call service=test operation=write route=\"POST /{id}\" attempts=1 status=200 result=success duration=2s queued=2s outcome=accepted\n"},
		{0, &flow.Pause{Until: time.Now().Add(time.Hour)}, "level=DEBUG msg=call service=test operation=write route=\"POST /{id}\" attempts=0 status=0 result=\"the service keeps failing, the next probe is awaited\" condition=suspended duration=0s outcome=\"not sent\"\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			c := newClient(t, serve(status(200)), WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
			call := write()
			call.Door = &door{opens: time.Now().Add(test.wait), down: test.down}
			if c.do(t.Context(), call); !strings.HasSuffix(log.String(), test.want) {
				t.Errorf("%s does not end in %s", &log, test.want)
			}
		})
	}
}

// The end of a download is logged, with its result.
func TestLogOfContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		for _, test := range []struct {
			pauses []time.Duration
			want   string
		}{
			{[]time.Duration{time.Second, time.Second}, "level=DEBUG msg=content service=test operation=download route=\"GET /{id}\" bytes=8 duration=2s result=success\n"},
			{[]time.Duration{time.Second, time.Hour}, "level=INFO msg=content service=test operation=download route=\"GET /{id}\" bytes=4 duration=11s result=\"the response stalled\" condition=timeout\n"},
		} {
			log.Reset()
			stream, _ := open(t, t.Context(), test.pauses, WithLogger(logger))
			_, _ = io.Copy(io.Discard, stream)
			stream.Close()
			if !strings.HasSuffix(log.String(), test.want) || strings.Count(log.String(), "msg=content") != 1 {
				t.Errorf("%s does not end in %s", &log, test.want)
			}
		}
	})
}
