package transport

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/carddata/carddata-go/internal/mask"
)

// A callLog writes the events of one call. Only what stands in this file is ever
// logged: an allow-list, because a list of what to leave out is never complete.
// No URL, header, body, id of the caller's or credential can be reached from it.
type callLog struct {
	ctx     context.Context
	logger  *slog.Logger // nil: nothing is logged
	service string
	call    *Call
}

func (l callLog) enabled(level slog.Level) bool {
	return l.logger != nil && l.logger.Enabled(l.ctx, level)
}

func (l callLog) event(level slog.Level, message string, attrs ...slog.Attr) {
	if !l.enabled(level) {
		return
	}
	l.logger.LogAttrs(l.ctx, level, message, append([]slog.Attr{
		slog.String("service", l.service),
		slog.String("operation", l.call.Operation),
		slog.String("route", l.call.Method+" "+l.call.Route),
	}, attrs...)...)
}

// Debug is for who looks at one call closely, info for what an operator wants to count,
// warn for what somebody should look at. A success is no news.

// attempt logs each request, also of a call that succeeds in the end. As this is
// hardly ever wanted, its attributes are made only if it is.
func (l callLog) attempt(n int, a *attempt) {
	if l.enabled(slog.LevelDebug) {
		l.event(slog.LevelDebug, "attempt", append(a.ending("attempt", n, a.verdict != success),
			slog.Duration("queued", a.queued),
			slog.Duration("duration", a.Evidence.Ended.Sub(a.Evidence.Began)))...)
	}
}

func (l callLog) retry(n int, a *attempt, wait time.Duration) {
	l.event(slog.LevelInfo, "retry", append(a.ending("attempt", n, true), slog.Duration("wait", wait))...)
}

func (l callLog) done(r *Result, a *attempt, took time.Duration) {
	level := slog.LevelDebug
	if r.Failure != nil {
		level = slog.LevelInfo
	}
	if !l.enabled(level) {
		return
	}
	attrs := append(a.ending("attempts", r.Attempts, r.Failure != nil), slog.Duration("duration", took))
	if l.call.Write {
		attrs = append(attrs, slog.String("outcome", r.Outcome.String()))
	}
	l.event(level, "call", attrs...)
}

// ending is how an attempt ended, and with the last one its call. The result is in
// words, for people; the condition is of the closed set of Failure.Condition, for
// metrics, and absent after a success. The request id is the one by which the service's
// operator finds the request.
func (a *attempt) ending(count string, n int, failed bool) []slog.Attr {
	attrs := []slog.Attr{slog.Int(count, n), slog.Int("status", a.StatusCode), slog.String("result", a.verdict.msg)}
	if failed {
		attrs = append(attrs, slog.String("condition", conditionOf(a.reason()).name))
	}
	if a.RequestID != "" {
		attrs = append(attrs, slog.String("request_id", a.RequestID))
	}
	return attrs
}

func (l callLog) resume(wait time.Duration) {
	l.event(slog.LevelInfo, "resume", slog.Duration("wait", wait))
}

// streamed logs how the content of a download ended, which is long after its
// call did.
func (l callLog) streamed(bytes int64, took time.Duration, end error) {
	attrs := []slog.Attr{slog.Int64("bytes", bytes), slog.Duration("duration", took)}
	if end == io.EOF {
		l.event(slog.LevelDebug, "content", append(attrs, slog.String("result", success.msg))...)
		return
	}
	l.event(slog.LevelInfo, "content", append(attrs, slog.String("result", end.Error()), slog.String("condition", conditionOf(end).name))...)
}

// reportDrift logs, once in the life of the process, what a response shows that the
// contract does not have. Error bodies are documented for downloads alone.
func (inv *invocation) reportDrift(a *attempt) {
	report := &inv.call.Drift
	if inv.call.Stream && a.verdict != success {
		report.CompareError(a.Body)
	}
	for _, finding := range report.News(inv.call.Route, a.Header) {
		if inv.isEcho(a, finding.Place) {
			finding.Place = "*"
		}
		inv.log.event(slog.LevelWarn, "drift", slog.String("kind", finding.Kind), slog.String("place", finding.Place))
	}
}

// budgetSpent is a warning because it is the one event that is about more than
// its own call: the service fails, and no call is retried.
func (l callLog) budgetSpent() {
	l.event(slog.LevelWarn, "retry budget spent")
}

func (l callLog) rate(perSecond float64) {
	l.event(slog.LevelInfo, "rate", slog.Float64("rate", perSecond))
}

// hide keeps a value that must not be printed out of the reach of fmt, which
// follows fields and pointers, and calls no function.
func hide(value string) func() string { return func() string { return value } }

// loggable returns a code or an id of the service's if it may be printed, and else "".
func (inv *invocation) loggable(a *attempt, s string) string {
	if Loggable(s) == "" || inv.isEcho(a, s) {
		return ""
	}
	return s
}

// isEcho tells whether the service repeats in s a credential or an id of the caller's.
func (inv *invocation) isEcho(a *attempt, s string) bool {
	said := mask.Fold(s)
	for name, values := range a.request {
		for _, value := range values {
			if !harmless[name] && mask.Repeats(said, strings.TrimPrefix(value, "Bearer "), 8) {
				return true
			}
		}
	}
	return inv.call.Identifiers != nil && slices.ContainsFunc(inv.call.Identifiers(), func(id string) bool { return mask.Repeats(said, id, 6) })
}

// requestID takes the first of the headers in common use; the service documents
// none. It is the one thing by which its support can find a request, as no id of the
// caller's is told to anybody.
func requestID(h http.Header) string {
	id := func(name string) string { return strings.TrimSpace(h.Get(name)) }
	return cmp.Or(id("X-Request-Id"), id("X-Correlation-Id"), id("Request-Id"))
}

// Loggable returns a code or an id of the service's if it looks like one and cannot
// be a card number, and else "".
func Loggable(s string) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:"
	if s == "" || len(s) > maxLoggable || strings.Trim(s, letters) != "" || mask.MayHoldCardNumber(s) {
		return ""
	}
	return s
}

const maxLoggable = 128
