package main

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/examples/engines/telemetry/instrument"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// collected returns instruments, and what they have recorded when read is called.
func collected(t *testing.T) (instrumented *instrument.Telemetry, read func() (tracetest.SpanStubs, metricdata.ResourceMetrics)) {
	t.Helper()
	spans, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	instrumented, err := instrument.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	if err != nil {
		t.Fatal(err)
	}
	return instrumented, func() (tracetest.SpanStubs, metricdata.ResourceMetrics) {
		var metrics metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &metrics); err != nil {
			t.Fatal(err)
		}
		return spans.GetSpans(), metrics
	}
}

var durations = regexp.MustCompile(`[0-9.]+(ms|s| s)\b|carddata.wait=[0-9.]+`)

// TestDemo checks everything that the demo records. The attributes of a metric find its
// spans, and none holds an id, a path, an amount or a credential.
func TestDemo(t *testing.T) {
	telemetry, read := collected(t)
	synctest.Test(t, func(t *testing.T) {
		engine := sandbox.New()
		server := engine.Start(sandbox.Refunds)
		defer server.Close()
		network := refunds.WithHTTPClient(&http.Client{Transport: telemetry.Transport(route)(server.Transport)})
		if err := demo(t.Context(), telemetry, engine, "https://refunds.example", network); err != nil {
			t.Fatal(err)
		}
	})
	spans, metrics := read()
	var out strings.Builder
	show(&out, spans, metrics)
	const want = `refunds submit  T
    carddata.attempts=2 carddata.operation=submit carddata.outcome=accepted carddata.service=refunds http.response.status_code=200
    event retry T error.type=rate_limited http.response.status_code=429
  POST /v1/{account_id}/refunds  T  ERROR
      error.type=429 http.request.method=POST http.response.status_code=429 server.address=refunds.example server.port=443 url.full=https://refunds.example/v1/{account_id}/refunds url.template=/v1/{account_id}/refunds
  POST /v1/{account_id}/refunds  T
      http.request.method=POST http.request.resend_count=1 http.response.status_code=200 server.address=refunds.example server.port=443 url.full=https://refunds.example/v1/{account_id}/refunds url.template=/v1/{account_id}/refunds
refunds submit  T  ERROR refunds: submit: no response: the connection broke: connection reset by peer (1 attempt): the outcome is unknown, the refund may have been recorded
    carddata.attempts=1 carddata.operation=submit carddata.outcome=unknown carddata.service=refunds error.type=no_response
  POST /v1/{account_id}/refunds  T  ERROR
      error.type=no_response http.request.method=POST server.address=refunds.example server.port=443 url.full=https://refunds.example/v1/{account_id}/refunds url.template=/v1/{account_id}/refunds
carddata.attempt.queued  carddata.operation=submit carddata.service=refunds: 3, T
carddata.call.duration  carddata.operation=submit carddata.outcome=accepted carddata.service=refunds http.response.status_code=200: 1, T
carddata.call.duration  carddata.operation=submit carddata.outcome=unknown carddata.service=refunds error.type=no_response: 1, T
carddata.retry.wait  carddata.operation=submit carddata.service=refunds error.type=rate_limited http.response.status_code=429: 1, T
http.client.request.duration  error.type=429 http.request.method=POST http.response.status_code=429 server.address=refunds.example server.port=443 url.template=/v1/{account_id}/refunds: 1, T
http.client.request.duration  error.type=no_response http.request.method=POST server.address=refunds.example server.port=443 url.template=/v1/{account_id}/refunds: 1, T
http.client.request.duration  http.request.method=POST http.response.status_code=200 server.address=refunds.example server.port=443 url.template=/v1/{account_id}/refunds: 1, T
`
	if got := durations.ReplaceAllString(out.String(), "T"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// errorTypes counts the values of a metric by their error.type.
func errorTypes(t *testing.T, metrics metricdata.ResourceMetrics, name string) map[string]uint64 {
	t.Helper()
	counts := map[string]uint64{}
	for _, scope := range metrics.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			for _, point := range m.Data.(metricdata.Histogram[float64]).DataPoints {
				value, _ := point.Attributes.Value("error.type")
				counts[value.AsString()] += point.Count
				if !slices.Equal(point.Bounds, instrument.Buckets) {
					t.Errorf("%s has the buckets %v", name, point.Bounds)
				}
			}
		}
	}
	return counts
}

// TestBulkCallsAreMeasured checks that each call of a SubmitAll is measured without Observe, and
// that other events are counted.
func TestBulkCallsAreMeasured(t *testing.T) {
	telemetry, read := collected(t)
	synctest.Test(t, func(t *testing.T) {
		engine := sandbox.New()
		server := engine.Start(sandbox.Refunds)
		defer server.Close()
		limited := sandbox.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Second}
		engine.Script(sandbox.Refunds, limited, limited, limited, sandbox.Fault{Status: http.StatusUnprocessableEntity})
		client, err := refunds.NewClient("https://refunds.example", refunds.WithHTTPClient(&http.Client{Transport: server.Transport}), refunds.WithLogger(slog.New(telemetry.Handler())))
		if err != nil {
			t.Fatal(err)
		}
		records := slices.Values([]*refunds.Refund{{RefundID: "re-1"}, {RefundID: "re-2"}, {RefundID: "re-3"}})
		for range client.SubmitAll(t.Context(), refunds.Items("acct-7", records), refunds.BulkOptions{}) {
		}
	})
	_, metrics := read()
	if got, want := errorTypes(t, metrics, "carddata.call.duration"), map[string]uint64{"": 2, "bad_request": 1, "rate_limited": 3}; !maps.Equal(got, want) {
		t.Errorf("calls by error.type: %v, want %v", got, want)
	}
	var out strings.Builder
	show(&out, nil, metrics)
	for _, event := range []string{"pause", "resume"} {
		if line := "carddata.events  carddata.event=" + event + " carddata.operation=submit carddata.service=refunds: 1\n"; !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, out.String())
		}
	}
}

// TestErrorTypes checks error.type of calls and attempts. An attempt has the status of an
// error response, and otherwise the same word as its call.
func TestErrorTypes(t *testing.T) {
	hang := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	fail := func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody}, nil
	}
	for name, test := range map[string]struct {
		base          roundTripper
		timeout       time.Duration
		cancel        bool
		attempt, call string
	}{
		"attempt timeout": {base: hang, timeout: time.Hour, attempt: "timeout", call: "timeout"},
		"deadline":        {base: hang, timeout: time.Second, attempt: "deadline_exceeded", call: "deadline_exceeded"},
		"canceled":        {base: hang, timeout: time.Second, cancel: true, attempt: "canceled", call: "canceled"},
		"server error":    {base: fail, timeout: time.Hour, attempt: "503", call: "server_error"},
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
					_, err := client.Submit(ctx, "acct-7", &refunds.Refund{RefundID: "re-1"})
					return err
				})
			})
			_, metrics := read()
			if got := errorTypes(t, metrics, "carddata.call.duration"); !maps.Equal(got, map[string]uint64{test.call: 1}) {
				t.Errorf("calls: %v, want %q", got, test.call)
			}
			if got := errorTypes(t, metrics, "http.client.request.duration"); !maps.Equal(got, map[string]uint64{test.attempt: 1}) {
				t.Errorf("attempts: %v, want %q", got, test.attempt)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestCollector runs the program with a collector.
func TestCollector(t *testing.T) {
	var received sync.Map // paths
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received.Store(r.URL.Path, true) }))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	if err := run(t.Context(), io.Discard, true); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/traces", "/v1/metrics"} {
		if _, ok := received.Load(path); !ok {
			t.Errorf("the collector received nothing under %s", path)
		}
	}
}
