package transport

import (
	"bytes"
	"context"
	"errors"
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
			"level=DEBUG msg=attempt" + about + "attempt=1 status=429 queued=3s duration=0s result=refused request_id=r-1",
			"level=INFO msg=retry" + about + "attempt=1 status=429 result=refused wait=2.",
			"level=DEBUG msg=attempt" + about + "attempt=2 status=200 queued=3s duration=0s result=success",
			"level=DEBUG msg=call" + about + "attempts=2 status=200 duration=8.",
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
		if !strings.HasSuffix(lines[3], "outcome=accepted") {
			t.Error(lines[3])
		}
	})
}

func TestText(t *testing.T) {
	type record struct {
		Name  string
		Any   any
		List  []string
		Array [1]string
		Map   map[string]any
		Ptr   *record
		N     int
	}
	for name, v := range map[string]any{
		"nothing": record{}, "text": record{Name: "é\x00", Any: "日", List: []string{"a"}, Map: map[string]any{"k": []any{1, nil, true, "v"}}, Ptr: &record{}},
	} {
		if err := CheckText("record", v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	endless := map[string]any{}
	endless["self"] = endless
	for name, v := range map[string]any{
		"string": record{Name: "secret\xff"}, "any": record{Any: "secret\xff"}, "list": record{List: []string{"", "\xff"}}, "array": record{Array: [1]string{"\xff"}},
		"map": record{Map: map[string]any{"k": []any{map[string]any{"k": "\xff"}}}}, "key": record{Map: map[string]any{"\xff": 1}},
		"pointer": record{Ptr: &record{Name: "\xff"}}, "half a pair": record{Name: "\xed\xa0\x80"}, "endless": endless,
	} {
		err := CheckText("record", v)
		if !errors.Is(err, ErrInvalidArgument) || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "record") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
