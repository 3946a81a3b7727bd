package transport

import (
	"cmp"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/carddata/carddata-go/internal/mask"
)

// silent is the logger of a call that has none.
var silent = slog.New(slog.DiscardHandler)

// event writes to the log. Only what stands in this file is ever logged: an
// allow-list, because a list of what to leave out is never complete. No URL, header,
// body, id of the caller's or credential is in it.
func (inv *invocation) event(level slog.Level, message string, attrs ...slog.Attr) {
	inv.log.LogAttrs(inv.ctx, level, message, append([]slog.Attr{
		slog.String("service", inv.client.service.Name),
		slog.String("operation", inv.call.Operation),
		slog.String("route", inv.call.Method+" "+inv.call.Route),
	}, attrs...)...)
}

// Debug is for who looks at one call closely, info for what an operator wants to count,
// warn for what somebody should look at. A success is no news.

// logAttempt logs each request, also of a call that succeeds in the end. As this is
// hardly ever wanted, its attributes are made only if it is.
func (inv *invocation) logAttempt(a *attempt) {
	if inv.log.Enabled(inv.ctx, slog.LevelDebug) {
		inv.event(slog.LevelDebug, "attempt", append(a.ending("attempt", inv.attempts, a.verdict != success),
			slog.Duration("queued", a.queued),
			slog.Duration("duration", a.Evidence.Ended.Sub(a.Evidence.Began)))...)
	}
}

func (inv *invocation) logRetry(a *attempt) {
	inv.event(slog.LevelInfo, "retry", append(a.ending("attempt", inv.attempts, true), slog.Duration("wait", inv.wait))...)
}

func (inv *invocation) logResult(r *Result, a *attempt) {
	level := slog.LevelDebug
	if r.Failure != nil {
		level = slog.LevelInfo
	}
	if !inv.log.Enabled(inv.ctx, level) {
		return
	}
	attrs := append(a.ending("attempts", r.Attempts, r.Failure != nil), slog.Duration("duration", time.Since(inv.began)))
	if inv.call.Write {
		attrs = append(attrs, slog.String("outcome", r.Outcome.String()))
	}
	inv.event(level, "call", attrs...)
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

// logContent logs how the content of a download ended, which is long after its
// call did.
func (inv *invocation) logContent(bytes int64, took time.Duration, end error) {
	attrs := []slog.Attr{slog.Int64("bytes", bytes), slog.Duration("duration", took)}
	if end == io.EOF {
		inv.event(slog.LevelDebug, "content", append(attrs, slog.String("result", success.msg))...)
		return
	}
	inv.event(slog.LevelInfo, "content", append(attrs, slog.String("result", end.Error()), slog.String("condition", conditionOf(end).name))...)
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
		inv.event(slog.LevelWarn, "drift", slog.String("kind", finding.Kind), slog.String("place", finding.Place))
	}
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
	repeated := func(value string) bool { return mask.Repeats(said, strings.TrimPrefix(value, "Bearer "), 8) }
	for name, values := range a.request {
		if !harmless[name] && slices.ContainsFunc(values, repeated) {
			return true
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
