package instrument

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// An eventHandler turns the library's events into metrics and span events. The
// events hold no id, address or credential, so everything can be exported.
type eventHandler struct {
	attrs  []slog.Attr
	calls  metric.Float64Histogram
	queued metric.Float64Histogram
	wait   metric.Float64Histogram
	others metric.Int64Counter
}

func newEventHandler(meter metric.Meter) (*eventHandler, error) {
	var errs [4]error
	h := &eventHandler{}
	h.queued, errs[0] = seconds(meter, "carddata.attempt.queued", "Wait for the limiter, a pause or a token")
	h.wait, errs[1] = seconds(meter, "carddata.retry.wait", "Wait before a retry")
	h.others, errs[2] = meter.Int64Counter("carddata.events", metric.WithDescription("Other events of the log, such as pause"))
	h.calls, errs[3] = seconds(meter, "carddata.call.duration", "Duration of a call, with all its attempts and waits")
	return h, errors.Join(errs[:]...)
}

// Enabled accepts debug events too: those of successful attempts and calls.
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
		h.queued.Record(ctx, seconds("queued"), metric.WithAttributes(attributes(values, "service", "operation")...))
	case "retry":
		why := attributes(values, "status", "condition")
		span.AddEvent("retry", trace.WithAttributes(append(why, attribute.Float64("carddata.wait", seconds("wait")))...))
		h.wait.Record(ctx, seconds("wait"), metric.WithAttributes(attributes(values, "service", "operation", "status", "condition")...))
	case "call":
		// This includes each call of SubmitAll and LookupAll.
		h.calls.Record(ctx, seconds("duration"), metric.WithAttributes(attributes(values, "service", "operation", "status", "outcome", "condition")...))
		if c := callOf(ctx); c != nil {
			c.reported.Store(new(attributes(values, "status", "outcome", "condition")))
		}
	default:
		what := append(attributes(values, "service", "operation"), attribute.String("carddata.event", event.Message))
		h.others.Add(ctx, 1, metric.WithAttributes(what...))
		span.AddEvent(event.Message)
	}
	return nil
}

func (h *eventHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.attrs = append(slices.Clip(h.attrs), attrs...)
	return &with
}

// WithGroup returns h, because the library's events have no groups.
func (h *eventHandler) WithGroup(string) slog.Handler { return h }

// attributes returns the values of keys, without status 0 for no response.
func attributes(values map[string]slog.Value, keys ...string) []attribute.KeyValue {
	var list []attribute.KeyValue
	for _, key := range keys {
		v, ok := values[key]
		switch {
		case !ok:
		case key == "condition":
			list = append(list, semconv.ErrorTypeKey.String(v.String()))
		case key != "status":
			list = append(list, attribute.String("carddata."+key, v.String()))
		case v.Int64() > 0:
			list = append(list, semconv.HTTPResponseStatusCode(int(v.Int64())))
		}
	}
	return list
}
