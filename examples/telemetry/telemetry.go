package main

import (
	"context"
	"errors"
	"io"
	"net/http"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

const (
	scope   = "github.com/carddata/carddata-go/examples/telemetry"
	service = "refund-worker" // OTEL_SERVICE_NAME overrides it
)

// buckets suit calls that take from milliseconds to minutes. The SDK's own begin
// at 5 and are meant for milliseconds.
var buckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120}

func seconds(meter metric.Meter, name, description string) (metric.Float64Histogram, error) {
	return meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(buckets...))
}

// A telemetry has the providers of a program and what its clients need of them.
type telemetry struct {
	traces   *sdktrace.TracerProvider
	metrics  *sdkmetric.MeterProvider
	tracer   trace.Tracer
	events   *eventHandler
	requests metric.Float64Histogram
}

// newTelemetry exports to stdout, and to the collector that the environment names.
func newTelemetry(ctx context.Context, stdout io.Writer, asJSON, collector bool) (*telemetry, error) {
	spans := []sdktrace.SpanExporter{&treePrinter{w: stdout}}
	metrics := []sdkmetric.Exporter{&tablePrinter{w: stdout}}
	if asJSON {
		span, err1 := stdouttrace.New(stdouttrace.WithWriter(stdout), stdouttrace.WithPrettyPrint())
		metric, err2 := stdoutmetric.New(stdoutmetric.WithWriter(stdout), stdoutmetric.WithPrettyPrint())
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		spans[0], metrics[0] = span, metric
	}
	if collector {
		span, err1 := otlptracehttp.New(ctx)
		metric, err2 := otlpmetrichttp.New(ctx)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		spans, metrics = append(spans, span), append(metrics, metric)
	}
	return provide(ctx, spans, metrics)
}

func provide(ctx context.Context, spans []sdktrace.SpanExporter, metrics []sdkmetric.Exporter) (*telemetry, error) {
	about, err := resource.New(ctx, resource.WithAttributes(semconv.ServiceName(service)), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	traceOptions := []sdktrace.TracerProviderOption{sdktrace.WithResource(about)}
	for _, exporter := range spans {
		traceOptions = append(traceOptions, sdktrace.WithBatcher(exporter))
	}
	metricOptions := []sdkmetric.Option{sdkmetric.WithResource(about)}
	for _, exporter := range metrics {
		metricOptions = append(metricOptions, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)))
	}
	return instruments(sdktrace.NewTracerProvider(traceOptions...), sdkmetric.NewMeterProvider(metricOptions...))
}

func instruments(traces *sdktrace.TracerProvider, metrics *sdkmetric.MeterProvider) (*telemetry, error) {
	var errs [2]error
	meter := metrics.Meter(scope)
	t := &telemetry{traces: traces, metrics: metrics, tracer: traces.Tracer(scope)}
	t.events, errs[0] = newEventHandler(meter)
	t.requests, errs[1] = seconds(meter, "http.client.request.duration", "Duration of HTTP client requests")
	return t, errors.Join(errs[:]...)
}

// Shutdown exports what is left.
func (t *telemetry) Shutdown(ctx context.Context) error {
	return errors.Join(t.traces.Shutdown(ctx), t.metrics.Shutdown(ctx))
}

// traced is for refunds.WithTransport. A client with several endpoints needs a
// route that tells them apart.
func (t *telemetry) traced(base http.RoundTripper) http.RoundTripper {
	route := func(*http.Request) string { return "/v1/{account_id}/refunds" }
	return &attemptTransport{base: base, tracer: t.tracer, duration: t.requests, route: route}
}
