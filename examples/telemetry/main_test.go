package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/internal/sandbox"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// record runs the demo and returns what it leaves.
func record(t *testing.T) (tracetest.SpanStubs, []metricdata.Metrics) {
	t.Helper()
	spans, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	traces := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	metrics := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	events, err := newEventHandler(metrics.Meter(scope))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		engine := sandbox.New()
		server := engine.Start(sandbox.Refunds)
		defer server.Close()
		err := demo(t.Context(), &telemetry{traces, metrics, traces.Tracer(scope), events}, engine, "https://refunds.example", server.Transport())
		if err != nil {
			t.Fatal(err)
		}
	})
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &collected); err != nil {
		t.Fatal(err)
	}
	var all []metricdata.Metrics
	for _, scope := range collected.ScopeMetrics {
		all = append(all, scope.Metrics...)
	}
	return spans.GetSpans(), all
}

func value(attributes []attribute.KeyValue, key attribute.Key) string {
	for _, a := range attributes {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

func TestTraceAndMetrics(t *testing.T) {
	spans, metrics := record(t)
	var calls tracetest.SpanStubs
	attempts := map[string][]string{} // by the call's span, their status
	for _, span := range spans {
		switch span.Name {
		case "submit refund":
			calls = append(calls, span)
		case "POST /v1/{account_id}/refunds":
			parent := span.Parent.SpanID().String()
			attempts[parent] = append(attempts[parent], value(span.Attributes, "http.response.status_code"))
		default:
			t.Errorf("a span %q", span.Name)
		}
	}
	if len(calls) != 2 {
		t.Fatalf("%d calls", len(calls))
	}
	for i, want := range []struct {
		attempts []string
		outcome  string
		status   codes.Code
		events   int
	}{
		{[]string{"429", "200"}, "accepted", codes.Unset, 1},
		{[]string{""}, "unknown", codes.Error, 0},
	} {
		call := calls[i]
		if got := attempts[call.SpanContext.SpanID().String()]; !slices.Equal(got, want.attempts) {
			t.Errorf("call %d: attempts with status %q", i, got)
		}
		if value(call.Attributes, "carddata.attempts") != fmt.Sprint(len(want.attempts)) ||
			value(call.Attributes, "carddata.outcome") != want.outcome || call.Status.Code != want.status || len(call.Events) != want.events {
			t.Errorf("call %d: %v, %v, %v", i, call.Attributes, call.Status, call.Events)
		}
	}
	counts := map[string]int64{}
	for _, m := range metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, point := range data.DataPoints {
				counts[m.Name] += point.Value
			}
		case metricdata.Histogram[float64]:
			for _, point := range data.DataPoints {
				counts[m.Name] += int64(point.Count)
			}
		}
	}
	for name, want := range map[string]int64{
		"carddata.attempts": 3, "carddata.attempt.queued": 3, "carddata.call.duration": 2, "carddata.retry.wait": 1, "http.client.request.duration": 3,
	} {
		if counts[name] != want {
			t.Errorf("%s counts %d", name, counts[name])
		}
	}
}

func TestNothingSecretIsExported(t *testing.T) {
	spans, metrics := record(t)
	exported := fmt.Sprintf("%+v %+v", spans, metrics)
	for _, secret := range []string{"re-100", "acct-7", "sandbox-credential", "411111", "10150"} {
		if strings.Contains(exported, secret) {
			t.Errorf("%q is exported", secret)
		}
	}
	if !strings.Contains(exported, "/v1/{account_id}/refunds") {
		t.Error("no route is exported")
	}
}

func TestJSON(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"-json"}, &stdout, &stderr, program.Variables{}.Lookup); code != 0 || stderr.Len() > 0 {
		t.Errorf("exit code %d, %s", code, &stderr)
	}
	for _, text := range []string{`"Name": "submit refund"`, `"Name": "carddata.call.duration"`} {
		if !strings.Contains(stdout.String(), text) {
			t.Errorf("no %s in\n%s", text, &stdout)
		}
	}
}

func TestTextAndCollector(t *testing.T) {
	received := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received <- r.URL.Path }))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL) // which the exporters read
	var stdout, stderr bytes.Buffer
	env := program.Variables{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL}.Lookup
	if code := run(t.Context(), nil, &stdout, &stderr, env); code != 0 || stderr.Len() > 0 {
		t.Fatalf("exit code %d, %s", code, &stderr)
	}
	for _, text := range []string{
		"\nsubmit refund  ", "\n  POST /v1/{account_id}/refunds  ", "event retry: carddata.result=refused", "carddata.outcome=unknown", "METRIC ",
	} {
		if !strings.Contains("\n"+stdout.String(), text) {
			t.Errorf("no %q in\n%s", text, &stdout)
		}
	}
	close(received)
	paths := map[string]bool{}
	for path := range received {
		paths[path] = true
	}
	if !paths["/v1/traces"] || !paths["/v1/metrics"] {
		t.Errorf("the collector received %v", paths)
	}
}

func TestUsage(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"extra"}, &stdout, &stderr, program.Variables{}.Lookup); code != target.ExitUsage {
		t.Errorf("an argument: exit code %d", code)
	}
}
