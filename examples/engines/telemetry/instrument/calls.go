// Package instrument makes OpenTelemetry spans and metrics of a client's calls and attempts.
// They hold no id, path, card number or credential.
package instrument

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

const scope = "github.com/carddata/carddata-go/examples/engines/telemetry/instrument"

// Buckets are for calls that take milliseconds to minutes. The SDK's own buckets begin at 5
// and are meant for milliseconds.
var Buckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120}

func seconds(meter metric.Meter, name, description string) (metric.Float64Histogram, error) {
	return meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(Buckets...))
}

// A Telemetry instruments clients of any of the three packages.
type Telemetry struct {
	tracer   trace.Tracer
	events   *eventHandler
	requests metric.Float64Histogram
}

// New makes the instruments.
func New(traces trace.TracerProvider, metrics metric.MeterProvider) (*Telemetry, error) {
	var errs [2]error
	meter := metrics.Meter(scope)
	t := &Telemetry{tracer: traces.Tracer(scope)}
	t.events, errs[0] = newEventHandler(meter)
	t.requests, errs[1] = seconds(meter, "http.client.request.duration", "Duration of HTTP client requests")
	return t, errors.Join(errs[:]...)
}

// Handler is for WithLogger. slog.NewMultiHandler keeps your log beside it.
func (t *Telemetry) Handler() slog.Handler { return t.events }

// Transport is for WithTransport. The route is the template of the client's endpoint,
// such as /v1/{account_id}/refunds.
func (t *Telemetry) Transport(route string) func(http.RoundTripper) http.RoundTripper {
	return func(base http.RoundTripper) http.RoundTripper {
		return &attemptTransport{base: base, tracer: t.tracer, duration: t.requests, route: route}
	}
}

// A call collects data of its attempts and events. It is in their context.
type call struct {
	requests atomic.Int64
	reported atomic.Pointer[[]attribute.KeyValue] // by the event that ends the call
}

type callKey struct{}

// callOf returns nil outside of Observe.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// Observe runs one call of a client in a span. The span has the same attributes as the
// call's metric.
func (t *Telemetry) Observe(ctx context.Context, service, operation string, do func(context.Context) error) error {
	c := &call{}
	ctx, span := t.tracer.Start(ctx, service+" "+operation)
	defer span.End()
	err := do(context.WithValue(ctx, callKey{}, c))
	attributes := []attribute.KeyValue{
		attribute.String("carddata.service", service),
		attribute.String("carddata.operation", operation),
	}
	reported := c.reported.Load()
	if reported != nil {
		attributes = append(attributes, *reported...)
	}
	if err != nil {
		errorType, text := describe(err)
		span.SetStatus(codes.Error, text)
		if reported == nil { // invalid arguments: nothing was called or measured
			attributes = append(attributes, semconv.ErrorTypeKey.String(errorType))
		}
	}
	span.SetAttributes(append(attributes, attribute.Int64("carddata.attempts", c.requests.Load()))...)
	return err
}

// A libraryError is an *Error of any of the three packages.
type libraryError interface {
	error
	Condition() string
}

// describe returns error.type, and the text of an error of the library. The text of any
// other error is left out, because it may hold an id.
func describe(err error) (errorType, text string) {
	if e, ok := errors.AsType[libraryError](err); ok {
		return e.Condition(), e.Error()
	}
	return "_OTHER", ""
}
