package transport

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLog proves what a call leaves in a log, which is all that ever does.
func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		untimed := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: untimed}))
		network := serve(status(429, "Retry-After", "2", "X-Request-Id", "r-1"), status(200, "X-Request-Id", "4111111111111111"))
		call := write()
		call.Path = "/secret"
		c := newClient(t, network, WithRetryWait(0, 0), WithLogger(logger), WithTokenSource(StaticToken("secret")), WithHeader("X-A", "secret"),
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
		if !strings.HasSuffix(lines[3], "s outcome=accepted") || !strings.Contains(lines[5], "result=refused condition=bad_request") {
			t.Error(log.String())
		}
	})
}

// TestLogOfContent proves that the end of a download is logged, with what came of it.
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
