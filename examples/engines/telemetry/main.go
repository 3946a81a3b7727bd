// Telemetry submits two refunds to a sandbox, and shows their traces and metrics. The first
// needs two attempts, and the outcome of the second is unknown. If
// OTEL_EXPORTER_OTLP_ENDPOINT is set, it sends them to that collector too.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/carddata/carddata-go/examples/engines/telemetry/instrument"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

func main() {
	if err := run(context.Background(), os.Stdout, os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != ""); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, stdout io.Writer, collector bool) error {
	engine := sandbox.New()
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer server.Close()
	spans, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	traceOptions := []sdktrace.TracerProviderOption{sdktrace.WithSyncer(spans)}
	metricOptions := []sdkmetric.Option{sdkmetric.WithReader(reader)}
	if collector {
		span, spanErr := otlptracehttp.New(ctx) // they read the environment
		metric, metricErr := otlpmetrichttp.New(ctx)
		if err := errors.Join(spanErr, metricErr); err != nil {
			return err
		}
		traceOptions = append(traceOptions, sdktrace.WithBatcher(span))
		metricOptions = append(metricOptions, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metric)))
	}
	traces, metrics := sdktrace.NewTracerProvider(traceOptions...), sdkmetric.NewMeterProvider(metricOptions...)
	t, err := instrument.New(traces, metrics)
	if err != nil {
		return err
	}
	if err := demo(ctx, t, engine, server.URL(), refunds.WithTransport(t.Transport(route))); err != nil {
		return err
	}
	var measured metricdata.ResourceMetrics
	err = reader.Collect(ctx, &measured)
	show(stdout, spans.GetSpans(), measured)
	return errors.Join(err, traces.Shutdown(ctx), metrics.Shutdown(ctx))
}

const route = "/v1/{account_id}/refunds"

// demo submits the two refunds.
func demo(ctx context.Context, t *instrument.Telemetry, engine *sandbox.Engine, url string, network refunds.Option) error {
	client, err := refunds.NewClient(url, network, refunds.WithLogger(slog.New(t.Handler())),
		refunds.WithTokenSource(refunds.StaticToken("sandbox-credential")))
	if err != nil {
		return err
	}
	submit := func(id string) error {
		return t.Observe(ctx, "refunds", "submit", func(ctx context.Context) error {
			_, err := client.Submit(ctx, "acct-7", &refunds.Refund{RefundID: id, Amount: new(int64(10150)), Currency: "USD"})
			return err
		})
	}
	engine.Script(sandbox.Refunds, sandbox.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Second})
	if err := submit("re-1001"); err != nil {
		return err
	}
	engine.Script(sandbox.Refunds, sandbox.Fault{Drop: true, Process: true})
	if err := submit("re-1002"); !errors.Is(err, refunds.ErrOutcomeUnknown) {
		return fmt.Errorf("the second refund: %w", err)
	}
	return nil
}

// show prints the traces, each call above its attempts, and the metrics.
func show(w io.Writer, spans tracetest.SpanStubs, metrics metricdata.ResourceMetrics) {
	for _, call := range spans {
		if call.Parent.IsValid() {
			continue
		}
		showSpan(w, "", call)
		for _, attempt := range spans {
			if attempt.Parent.SpanID() == call.SpanContext.SpanID() {
				showSpan(w, "  ", attempt)
			}
		}
	}
	var lines []string
	for _, scope := range metrics.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, point := range data.DataPoints {
					lines = append(lines, fmt.Sprintf("%s  %s: %d, %.3f %s\n", m.Name, list(point.Attributes.ToSlice()), point.Count, point.Sum, m.Unit))
				}
			case metricdata.Sum[int64]:
				for _, point := range data.DataPoints {
					lines = append(lines, fmt.Sprintf("%s  %s: %d\n", m.Name, list(point.Attributes.ToSlice()), point.Value))
				}
			}
		}
	}
	slices.Sort(lines)
	io.WriteString(w, strings.Join(lines, ""))
}

func showSpan(w io.Writer, indent string, span tracetest.SpanStub) {
	status := ""
	if span.Status.Code == codes.Error {
		status = strings.TrimRight("  ERROR "+span.Status.Description, " ")
	}
	fmt.Fprintf(w, "%s%s  %v%s\n", indent, span.Name, span.EndTime.Sub(span.StartTime).Round(time.Millisecond), status)
	fmt.Fprintf(w, "%s    %s\n", indent, list(span.Attributes))
	for _, event := range span.Events {
		fmt.Fprintf(w, "%s    event %s\n", indent, strings.TrimSpace(event.Name+" "+list(event.Attributes)))
	}
}

func list(attributes []attribute.KeyValue) string {
	var texts []string
	for _, a := range attributes {
		texts = append(texts, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}
