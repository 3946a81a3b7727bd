package main

import (
	"context"
	"errors"
	"io"
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const scope = "github.com/carddata/carddata-go/examples/telemetry"

// A telemetry is the providers of a program, and what its clients take of them.
type telemetry struct {
	traces  *sdktrace.TracerProvider
	metrics *sdkmetric.MeterProvider
	tracer  trace.Tracer
	events  *eventHandler
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
	return provide(spans, metrics)
}

func provide(spans []sdktrace.SpanExporter, metrics []sdkmetric.Exporter) (*telemetry, error) {
	var traceOptions []sdktrace.TracerProviderOption
	for _, exporter := range spans {
		traceOptions = append(traceOptions, sdktrace.WithBatcher(exporter))
	}
	var metricOptions []sdkmetric.Option
	for _, exporter := range metrics {
		metricOptions = append(metricOptions, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)))
	}
	t := &telemetry{
		traces:  sdktrace.NewTracerProvider(traceOptions...),
		metrics: sdkmetric.NewMeterProvider(metricOptions...),
	}
	t.tracer = t.traces.Tracer(scope)
	var err error
	t.events, err = newEventHandler(t.metrics.Meter(scope))
	return t, err
}

// Shutdown exports what was not exported yet.
func (t *telemetry) Shutdown(ctx context.Context) error {
	return errors.Join(t.traces.Shutdown(ctx), t.metrics.Shutdown(ctx))
}

// traced gives each request of a client a span, named by method and template of
// its path. No header of the trace is sent to the service, which has not said that it
// wants one.
func (t *telemetry) traced(template string, transport http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(withTemplate{template, transport},
		otelhttp.WithTracerProvider(t.traces),
		otelhttp.WithMeterProvider(t.metrics),
		otelhttp.WithPropagators(propagation.NewCompositeTextMapPropagator()),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return r.Method + " " + template }),
	)
}

// withTemplate puts the template in place of the path, which holds an id, in what
// otelhttp has just noted of the request.
type withTemplate struct {
	template string
	http.RoundTripper
}

func (w withTemplate) RoundTrip(r *http.Request) (*http.Response, error) {
	trace.SpanFromContext(r.Context()).SetAttributes(
		attribute.String("url.template", w.template),
		attribute.String("url.full", r.URL.Scheme+"://"+r.URL.Host+w.template))
	return w.RoundTripper.RoundTrip(r)
}
