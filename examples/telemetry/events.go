package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// An eventHandler makes metrics and span attributes of the library's events. They
// hold no id, address or credential, so that all of them may be exported.
type eventHandler struct {
	attrs   []slog.Attr
	calls   metric.Float64Histogram
	queued  metric.Float64Histogram
	wait    metric.Float64Histogram
	tries   metric.Int64Counter
	exhaust metric.Int64Counter
}

func newEventHandler(meter metric.Meter) (*eventHandler, error) {
	var errs [5]error
	h := &eventHandler{}
	seconds := metric.WithUnit("s")
	h.calls, errs[0] = meter.Float64Histogram("carddata.call.duration", seconds, metric.WithDescription("calls, with all attempts and waits"))
	h.queued, errs[1] = meter.Float64Histogram("carddata.attempt.queued", seconds, metric.WithDescription("waits for the limiter, a pause or a token"))
	h.wait, errs[2] = meter.Float64Histogram("carddata.retry.wait", seconds, metric.WithDescription("waits before a repetition"))
	h.tries, errs[3] = meter.Int64Counter("carddata.attempts", metric.WithDescription("requests handed to the network"))
	h.exhaust, errs[4] = meter.Int64Counter("carddata.retry.budget_spent", metric.WithDescription("repetitions that the retry budget refused"))
	return h, errors.Join(errs[:]...)
}

// Enabled: attempts and calls that succeed are debug events.
func (h *eventHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *eventHandler) Handle(ctx context.Context, event slog.Record) error {
	values := map[string]slog.Value{}
	take := func(a slog.Attr) bool { values[a.Key] = a.Value; return true }
	for _, a := range h.attrs {
		take(a)
	}
	event.Attrs(take)
	seconds := func(key string) float64 { return values[key].Duration().Seconds() }
	span := trace.SpanFromContext(ctx)
	switch event.Message {
	case "attempt":
		h.tries.Add(ctx, 1, labels(values, "service", "operation", "status", "result"))
		h.queued.Record(ctx, seconds("queued"), labels(values, "service", "operation"))
	case "retry":
		h.wait.Record(ctx, seconds("wait"), labels(values, "service", "operation", "result"))
		span.AddEvent("retry", trace.WithAttributes(
			attribute.String("carddata.result", values["result"].String()), attribute.Float64("carddata.wait", seconds("wait"))))
	case "retry budget spent":
		h.exhaust.Add(ctx, 1, labels(values, "service", "operation"))
		span.AddEvent("retry budget spent")
	case "call":
		h.calls.Record(ctx, seconds("duration"), labels(values, "service", "operation", "status", "result", "outcome"))
		span.SetAttributes(append(attributes(values, "service", "operation", "result", "outcome"),
			attribute.Int64("carddata.attempts", values["attempts"].Int64()))...)
		if event.Level > slog.LevelDebug {
			span.SetStatus(codes.Error, values["result"].String())
		}
	}
	return nil
}

func (h *eventHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.attrs = append(slices.Clip(h.attrs), attrs...)
	return &with
}

// WithGroup: the library's events have no groups.
func (h *eventHandler) WithGroup(string) slog.Handler { return h }

func labels(values map[string]slog.Value, keys ...string) metric.MeasurementOption {
	return metric.WithAttributes(attributes(values, keys...)...)
}

func attributes(values map[string]slog.Value, keys ...string) []attribute.KeyValue {
	var list []attribute.KeyValue
	for _, key := range keys {
		if v, ok := values[key]; ok {
			list = append(list, attribute.String("carddata."+key, v.String()))
		}
	}
	return list
}
