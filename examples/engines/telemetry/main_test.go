package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/examples/engines/telemetry/instrument"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// collected returns instruments, and what they have recorded when read is called.
func collected(t *testing.T) (instrumented *instrument.Telemetry, read func() (tracetest.SpanStubs, []metricdata.Metrics)) {
	t.Helper()
	spans, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	instrumented, err := instrument.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	if err != nil {
		t.Fatal(err)
	}
	return instrumented, func() (tracetest.SpanStubs, []metricdata.Metrics) {
		var metrics metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &metrics); err != nil {
			t.Fatal(err)
		}
		var all []metricdata.Metrics
		for _, scope := range metrics.ScopeMetrics {
			all = append(all, scope.Metrics...)
		}
		return spans.GetSpans(), all
	}
}

// record runs the demo, and returns its spans and metrics.
func record(t *testing.T) (tracetest.SpanStubs, []metricdata.Metrics) {
	t.Helper()
	telemetry, read := collected(t)
	synctest.Test(t, func(t *testing.T) {
		engine := sandbox.New()
		server := engine.Start(sandbox.Refunds)
		defer server.Close()
		fake := refunds.WithHTTPClient(&http.Client{Transport: telemetry.Transport(route)(server.Transport())})
		err := demo(t.Context(), telemetry, engine, "https://refunds.example", fake)
		if err != nil {
			t.Fatal(err)
		}
	})
	return read()
}

func TestTraces(t *testing.T) {
	spans, _ := record(t)
	const (
		calls   = "carddata.operation=submit carddata.outcome=%s carddata.service=refunds %s"
		attempt = "http.request.method=POST %sserver.address=refunds.example server.port=443 " +
			"url.full=https://refunds.example/v1/{account_id}/refunds url.template=/v1/{account_id}/refunds"
	)
	want := []struct {
		name, attributes string
		code             codes.Code
	}{
		{"POST /v1/{account_id}/refunds", "error.type=429 " + fmt.Sprintf(attempt, "http.response.status_code=429 "), codes.Error},
		{"POST /v1/{account_id}/refunds", fmt.Sprintf(attempt, "http.request.resend_count=1 http.response.status_code=200 "), codes.Unset},
		{"refunds submit", "carddata.attempts=2 " + fmt.Sprintf(calls, "accepted", "http.response.status_code=200"), codes.Unset},
		{"POST /v1/{account_id}/refunds", "error.type=no_response " + fmt.Sprintf(attempt, ""), codes.Error},
		{"refunds submit", "carddata.attempts=1 " + fmt.Sprintf(calls, "unknown", "error.type=no_response"), codes.Error},
	}
	if len(spans) != len(want) {
		t.Fatalf("%d spans", len(spans))
	}
	for i, span := range spans {
		if got := list(span.Attributes); span.Name != want[i].name || got != want[i].attributes || span.Status.Code != want[i].code {
			t.Errorf("span %d: %s, %v\n got %s\nwant %s", i, span.Name, span.Status, got, want[i].attributes)
		}
	}
	for i, call := range []int{2, 2, 2, 4, 4} { // a call ends after its attempts
		if span := spans[i]; i != call && (span.Parent.SpanID() != spans[call].SpanContext.SpanID() || span.SpanKind != trace.SpanKindClient) {
			t.Errorf("span %d: kind %v, not below its call", i, span.SpanKind)
		}
	}
	var events []string
	for _, event := range spans[2].Events {
		events = append(events, event.Name)
	}
	if !slices.Equal(events, []string{"pause", "resume", "retry"}) || !strings.HasPrefix(list(spans[2].Events[2].Attributes), "carddata.wait=") {
		t.Errorf("events %v", spans[2].Events)
	}
}

// TestMetricsMatchTraces checks that the attributes of a metric find its spans.
func TestMetricsMatchTraces(t *testing.T) {
	spans, metrics := record(t)
	onSpansOnly := map[attribute.Key]bool{"carddata.attempts": true, "http.request.resend_count": true, "url.full": true}
	var fromSpans, fromMetrics []string
	for _, span := range spans {
		fromSpans = append(fromSpans, list(slices.DeleteFunc(span.Attributes, func(a attribute.KeyValue) bool { return onSpansOnly[a.Key] })))
	}
	counts := map[string]uint64{}
	for _, m := range metrics {
		if events, ok := m.Data.(metricdata.Sum[int64]); ok {
			for _, point := range events.DataPoints {
				counts[m.Name+" "+list(point.Attributes.ToSlice())] += uint64(point.Value)
			}
			continue
		}
		data, ok := m.Data.(metricdata.Histogram[float64])
		if !ok {
			t.Errorf("%s is %T", m.Name, m.Data)
			continue
		}
		for _, point := range data.DataPoints {
			counts[m.Name] += point.Count
			if !slices.Equal(point.Bounds, instrument.Buckets) || m.Unit != "s" {
				t.Errorf("%s: unit %s, buckets %v", m.Name, m.Unit, point.Bounds)
			}
			if m.Name == "carddata.call.duration" || m.Name == "http.client.request.duration" {
				fromMetrics = append(fromMetrics, list(point.Attributes.ToSlice()))
			}
		}
	}
	slices.Sort(fromSpans)
	slices.Sort(fromMetrics)
	if !slices.Equal(fromSpans, fromMetrics) {
		t.Errorf("spans\n%s\nmetrics\n%s", strings.Join(fromSpans, "\n"), strings.Join(fromMetrics, "\n"))
	}
	want := map[string]uint64{
		"carddata.attempt.queued": 3, "carddata.call.duration": 2, "carddata.retry.wait": 1, "http.client.request.duration": 3,
		"carddata.events carddata.event=pause carddata.operation=submit carddata.service=refunds":  1,
		"carddata.events carddata.event=resume carddata.operation=submit carddata.service=refunds": 1,
	}
	if !maps.Equal(counts, want) {
		t.Errorf("counts %v", counts)
	}
}

// TestBulkCallsAreMeasured checks that each call of a SubmitAll is measured without Observe.
func TestBulkCallsAreMeasured(t *testing.T) {
	telemetry, read := collected(t)
	synctest.Test(t, func(t *testing.T) {
		engine := sandbox.New()
		server := engine.Start(sandbox.Refunds)
		defer server.Close()
		engine.Script(sandbox.Refunds, sandbox.Fault{Status: http.StatusUnprocessableEntity})
		client, err := refunds.NewClient("https://refunds.example", refunds.WithHTTPClient(&http.Client{Transport: server.Transport()}), refunds.WithLogger(slog.New(telemetry.Handler())))
		if err != nil {
			t.Fatal(err)
		}
		records := slices.Values([]*refunds.Refund{{RefundID: "re-1"}, {RefundID: "re-2"}, {RefundID: "re-3"}})
		for range client.SubmitAll(t.Context(), refunds.Items("acct-7", records), refunds.BulkOptions{}) {
		}
	})
	counts := map[string]uint64{}
	_, metrics := read()
	for _, m := range metrics {
		if m.Name == "carddata.call.duration" {
			for _, point := range m.Data.(metricdata.Histogram[float64]).DataPoints {
				counts[errorType(point.Attributes.ToSlice())] += point.Count
			}
		}
	}
	if want := map[string]uint64{"": 2, "bad_request": 1}; !maps.Equal(counts, want) {
		t.Errorf("calls by error.type: %v, want %v", counts, want)
	}
}

// TestErrorTypes checks error.type in spans and metrics. An attempt has the status of an
// error response, and otherwise the same word as its call.
func TestErrorTypes(t *testing.T) {
	hang := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	respond := func(status int, body io.Reader) roundTripper {
		return func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body), ContentLength: -1}, nil
		}
	}
	for name, test := range map[string]struct {
		base          roundTripper
		id            string
		timeout       time.Duration
		cancel        bool
		attempt, call string
	}{
		"attempt timeout":  {base: hang, id: "re-1", timeout: time.Hour, attempt: "timeout", call: "timeout"},
		"deadline":         {base: hang, id: "re-1", timeout: time.Second, attempt: "deadline_exceeded", call: "deadline_exceeded"},
		"canceled":         {base: hang, id: "re-1", timeout: time.Second, cancel: true, attempt: "canceled", call: "canceled"},
		"server error":     {base: respond(503, strings.NewReader("")), id: "re-1", timeout: time.Hour, attempt: "503", call: "server_error"},
		"body cut off":     {base: respond(200, iotest.ErrReader(io.ErrUnexpectedEOF)), id: "re-1", timeout: time.Hour, attempt: "bad_response"},
		"invalid argument": {timeout: time.Hour, call: "invalid_argument"},
	} {
		t.Run(name, func(t *testing.T) {
			telemetry, read := collected(t)
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), test.timeout)
				defer cancel()
				if test.cancel {
					time.AfterFunc(time.Millisecond, cancel)
				}
				network := refunds.WithHTTPClient(&http.Client{Transport: telemetry.Transport(route)(test.base)})
				client, err := refunds.NewClient("https://refunds.example", network, refunds.WithLogger(slog.New(telemetry.Handler())))
				if err != nil {
					t.Fatal(err)
				}
				telemetry.Observe(ctx, "refunds", "submit", func(ctx context.Context) error {
					_, err := client.Submit(ctx, "acct-7", &refunds.Refund{RefundID: test.id})
					return err
				})
			})
			spans, metrics := read()
			want := map[string]string{"refunds submit": test.call}
			if test.base != nil {
				want["POST /v1/{account_id}/refunds"] = test.attempt
			}
			got := map[string]string{}
			for _, span := range spans {
				got[span.Name] = errorType(span.Attributes)
			}
			if !maps.Equal(got, want) {
				t.Errorf("spans: %q, want %q", got, want)
			}
			clear(got)
			spanName := map[string]string{"carddata.call.duration": "refunds submit", "http.client.request.duration": "POST /v1/{account_id}/refunds"}
			for _, m := range metrics {
				if name, ok := spanName[m.Name]; ok {
					got[name] = errorType(m.Data.(metricdata.Histogram[float64]).DataPoints[0].Attributes.ToSlice())
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("metrics: %q, want %q", got, want)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func errorType(attributes []attribute.KeyValue) string {
	for _, a := range attributes {
		if a.Key == "error.type" {
			return a.Value.AsString()
		}
	}
	return ""
}

func TestNothingSecretIsExported(t *testing.T) {
	spans, metrics := record(t)
	exported := fmt.Sprintf("%+v %+v", spans, metrics)
	for _, secret := range []string{"re-100", "acct-7", "sandbox-credential", "10150"} {
		if strings.Contains(exported, secret) {
			t.Errorf("%q is exported", secret)
		}
	}
	if !strings.Contains(exported, "/v1/{account_id}/refunds") {
		t.Error("no route is exported")
	}
}

// TestRun runs the program with a collector.
func TestRun(t *testing.T) {
	var mu sync.Mutex
	received := map[string]bool{} // paths
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		received[r.URL.Path] = true
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	var stdout strings.Builder
	if err := run(t.Context(), &stdout, true); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"\nrefunds submit  ", "\n  POST /v1/{account_id}/refunds  ", "event retry carddata.wait=", "carddata.outcome=unknown", "\ncarddata.call.duration: 1, ",
	} {
		if !strings.Contains("\n"+stdout.String(), text) {
			t.Errorf("no %q in\n%s", text, &stdout)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if want := map[string]bool{"/v1/traces": true, "/v1/metrics": true}; !maps.Equal(received, want) {
		t.Errorf("the collector received %v", received)
	}
}
