package transport

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"
)

// A callLog writes the events of one call. Only what stands here is ever
// logged: no URL, header, body, id or credential can be reached from it.
type callLog struct {
	ctx     context.Context
	logger  *slog.Logger
	service string
	call    *Call
}

func newCallLog(ctx context.Context, l *slog.Logger, service string, call *Call) callLog {
	return callLog{ctx, l, service, call}
}

// now reads the clock if that is logged, as every reading takes its time.
func (l callLog) now() (t time.Time) {
	if l.logger != nil {
		t = time.Now()
	}
	return t
}

func (l callLog) since(t time.Time) time.Duration { return l.now().Sub(t) }

func (l callLog) event(level slog.Level, message string, attrs ...slog.Attr) {
	if l.logger == nil || !l.logger.Enabled(l.ctx, level) {
		return
	}
	attrs = append([]slog.Attr{
		slog.String("service", l.service),
		slog.String("operation", l.call.Operation),
		slog.String("route", l.call.Method+" "+l.call.Route),
	}, attrs...)
	l.logger.LogAttrs(l.ctx, level, message, attrs...)
}

func (l callLog) attempt(n int, a *attempt) {
	if l.logger == nil {
		return
	}
	attrs := []slog.Attr{
		slog.Int("attempt", n),
		slog.Int("status", a.evidence.StatusCode),
		slog.Duration("queued", a.queued),
		slog.Duration("duration", a.evidence.Ended.Sub(a.evidence.Began)),
		slog.String("result", matrix[a.point].words),
	}
	if isPrintableToken(a.id) {
		attrs = append(attrs, slog.String("request_id", a.id))
	}
	l.event(slog.LevelDebug, "attempt", attrs...)
}

func (l callLog) retry(n int, a *attempt, wait time.Duration) {
	l.event(slog.LevelInfo, "retry",
		slog.Int("attempt", n),
		slog.Int("status", a.evidence.StatusCode),
		slog.String("result", matrix[a.point].words),
		slog.Duration("wait", wait))
}

func (l callLog) resume(wait time.Duration) {
	l.event(slog.LevelInfo, "resume", slog.Duration("wait", wait))
}

func (l callLog) streamed(bytes int64, took time.Duration, end error) {
	level, result := slog.LevelInfo, "the content broke"
	if end == io.EOF {
		level, result = slog.LevelDebug, matrix[success].words
	} else if known, ok := errors.AsType[*reason](end); ok {
		result = known.words
	}
	l.event(level, "content",
		slog.Int64("bytes", bytes),
		slog.Duration("duration", took),
		slog.String("result", result))
}

func (l callLog) budgetSpent() { l.event(slog.LevelWarn, "retry budget spent") }

func (l callLog) done(r *Result, a *attempt, took time.Duration) {
	if l.logger == nil {
		return
	}
	level := slog.LevelDebug
	if r.Failure != nil {
		level = slog.LevelInfo
	}
	attrs := []slog.Attr{
		slog.Int("attempts", r.Attempts),
		slog.Int("status", r.StatusCode),
		slog.Duration("duration", took),
		slog.String("result", matrix[a.point].words),
	}
	if l.call.Write {
		attrs = append(attrs, slog.String("outcome", r.Outcome.String()))
	}
	if isPrintableToken(r.RequestID) {
		attrs = append(attrs, slog.String("request_id", r.RequestID))
	}
	l.event(level, "call", attrs...)
}
