package transport

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/flow"
	"github.com/carddata/carddata-go/internal/mask"
)

// A PauseLog logs that calls are held back, because the service keeps failing, and that they
// go on.
type PauseLog struct {
	Client *Client
	Call   Call

	mu     sync.Mutex
	paused bool
}

// Log logs if the service has gone down, or works again. It holds no lock while the caller's logger
// runs.
func (p *PauseLog) Log(s flow.State) {
	p.mu.Lock()
	same := s.IsDown() == p.paused
	p.paused = s.IsDown()
	p.mu.Unlock()
	if same {
		return
	}
	if s.IsDown() {
		p.Event(slog.LevelInfo, "pause", slog.String("condition", s.Why), slog.Time("until", p.Client.Probes("", s.PausedUntil)))
	} else {
		p.Event(slog.LevelInfo, "resume", slog.String("condition", s.Why))
	}
}

// Event logs something that belongs to no single call.
func (p *PauseLog) Event(level slog.Level, message string, attrs ...slog.Attr) {
	inv := &invocation{client: p.Client, call: &p.Call, ctx: context.Background(), log: cmp.Or(p.Client.settings.Logger, silent)}
	inv.event(level, message, attrs...)
}

// silent is the logger of a call that has none.
var silent = slog.New(slog.DiscardHandler)

// event writes to the log. Only this file logs, and it logs only known fields: an allow-list,
// because a deny-list is never complete. It logs no URL, header, body, credential or id of
// the caller.
func (inv *invocation) event(level slog.Level, message string, attrs ...slog.Attr) {
	inv.log.LogAttrs(inv.ctx, level, message, append([]slog.Attr{
		slog.String("service", inv.client.service.Name),
		slog.String("operation", inv.call.Operation),
		slog.String("route", inv.call.Method+" "+inv.call.Route),
	}, attrs...)...)
}

// Levels: debug shows every attempt, info shows events to count, and warn shows problems to
// look at. Successes are logged at debug.

// logAttempt logs each attempt. It builds the attributes only if debug is on.
func (inv *invocation) logAttempt(a *attempt) {
	if inv.log.Enabled(inv.ctx, slog.LevelDebug) {
		inv.event(slog.LevelDebug, "attempt", append(a.ending("attempt", inv.attempts),
			slog.Duration("queued", a.queued),
			slog.Duration("duration", a.Evidence.Ended.Sub(a.Evidence.Began)))...)
	}
}

// logRetry logs a retry when it is sent, with the result of the attempt before.
func (inv *invocation) logRetry(a *attempt) {
	inv.event(slog.LevelInfo, "retry", append(a.ending("attempt", inv.attempts), slog.Duration("wait", inv.wait))...)
}

// logPause logs that no call is sent for a while, and the response that asked for it. The
// first request after the pause logs a resume.
func (inv *invocation) logPause(a *attempt, pause time.Duration) {
	inv.event(slog.LevelInfo, "pause", append(a.ending("attempt", inv.attempts),
		slog.Duration("wait", pause), slog.Time("until", time.Now().Add(pause)))...)
}

// logResult logs a finished call. A failure has the text and the condition that the caller
// gets. It is at debug if the caller's own BeforeSend ended the call, because most often it came twice, and if
// the service is down, because the pause is at info.
func (inv *invocation) logResult(r *Result, a *attempt) {
	level, result, condition := slog.LevelDebug, a.verdict.Text, ""
	if r.Failure != nil {
		if a.sent || a.verdict != fault.NotBegun && inv.resumes.IsZero() {
			level = slog.LevelInfo
		}
		condition = r.Failure.Condition()
		result = cmp.Or(fault.SafeText(r.Failure.Err), result)
	}
	if !inv.log.Enabled(inv.ctx, level) {
		return
	}
	attrs := append(a.attrs("attempts", r.Attempts, result, condition), slog.Duration("duration", time.Since(inv.began)))
	if inv.queued > longWait {
		attrs = append(attrs, slog.Duration("queued", inv.queued))
	}
	if inv.call.Write {
		attrs = append(attrs, slog.String("outcome", r.Outcome.String()))
	}
	inv.event(level, "call", attrs...)
}

// longWait is how long the attempts of a call may have waited before the event of the call says it.
const longWait = time.Second

// ending returns the attributes of a finished attempt.
func (a *attempt) ending(count string, n int) []slog.Attr {
	condition := ""
	if a.verdict != fault.Success {
		condition = fault.ConditionOf(a.reason())
	}
	return a.attrs(count, n, a.verdict.Text, condition)
}

// attrs returns the attributes of a result. result is text for people. condition is from the
// closed set of Failure.Condition, for metrics, and absent after a success. The service's
// support finds the request by its request id.
func (a *attempt) attrs(count string, n int, result, condition string) []slog.Attr {
	attrs := []slog.Attr{slog.Int(count, n), slog.Int("status", a.StatusCode), slog.String("result", result)}
	if condition != "" {
		attrs = append(attrs, slog.String("condition", condition))
	}
	if a.RequestID != "" {
		attrs = append(attrs, slog.String("request_id", a.RequestID))
	}
	return attrs
}

// logContent logs the end of a download's content, long after the end of its call.
func (inv *invocation) logContent(bytes int64, took time.Duration, end error) {
	attrs := []slog.Attr{slog.Int64("bytes", bytes), slog.Duration("duration", took)}
	if end == io.EOF {
		inv.event(slog.LevelDebug, "content", append(attrs, slog.String("result", fault.Success.Text))...)
		return
	}
	inv.event(slog.LevelInfo, "content", append(attrs, slog.String("result", end.Error()), slog.String("condition", fault.ConditionOf(end)))...)
}

// loggable returns a code or an id of the service if it may be printed, and otherwise "".
func (inv *invocation) loggable(a *attempt, s string) string {
	if fault.Loggable(s) == "" || inv.isEcho(a, s) {
		return ""
	}
	return s
}

// isEcho reports whether s repeats a credential or an id of the caller.
func (inv *invocation) isEcho(a *attempt, s string) bool {
	repeats := mask.Echoes(s)
	for name, values := range a.request {
		if !harmless[name] && slices.ContainsFunc(values, func(value string) bool { return repeats(strings.TrimPrefix(value, "Bearer "), 8) }) {
			return true
		}
	}
	isID := func(id string) bool { return repeats(id, 6) }
	return slices.ContainsFunc(inv.client.baseSegments(), isID) || inv.call.Identifiers != nil && slices.ContainsFunc(inv.call.Identifiers(), isID)
}

// requestID reads the first of the common headers, because the service documents none. The
// service's support can find a request only by this id: the log holds no id of the caller.
func requestID(h http.Header) string {
	id := func(name string) string { return strings.TrimSpace(h.Get(name)) }
	return cmp.Or(id("X-Request-Id"), id("X-Correlation-Id"), id("Request-Id"))
}
