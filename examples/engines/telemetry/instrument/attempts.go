package instrument

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/carddata/carddata-go/refunds"
)

// An attemptTransport makes a client span for each request, until the header of its
// response, and records http.client.request.duration with the same attributes. otelhttp
// would put the path, which holds an id, and the text of network errors into its spans, and
// sets error.type for an error status in spans but not in metrics.
//
// No trace header is added to the request, because the service does not document one.
type attemptTransport struct {
	base     http.RoundTripper
	tracer   trace.Tracer
	duration metric.Float64Histogram
	route    string // the path's template
}

func (t *attemptTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, span := t.tracer.Start(r.Context(), r.Method+" "+t.route, trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	span.SetAttributes(semconv.URLFull(r.URL.Scheme + "://" + r.URL.Host + t.route))
	if c := callOf(ctx); c != nil {
		if n := int(c.requests.Add(1)) - 1; n > 0 {
			span.SetAttributes(semconv.HTTPRequestResendCount(n))
		}
	}
	attributes := []attribute.KeyValue{
		semconv.HTTPRequestMethodKey.String(r.Method),
		semconv.URLTemplate(t.route),
		semconv.ServerAddress(r.URL.Hostname()),
		semconv.ServerPort(port(r)),
	}
	began := time.Now()
	resp, err := t.base.RoundTrip(r.WithContext(ctx))
	errorType := ""
	if err != nil {
		errorType = networkError(ctx, err)
	} else {
		attributes = append(attributes, semconv.HTTPResponseStatusCode(resp.StatusCode))
		if resp.StatusCode >= http.StatusBadRequest {
			errorType = strconv.Itoa(resp.StatusCode)
		}
	}
	if errorType != "" {
		attributes = append(attributes, semconv.ErrorTypeKey.String(errorType))
		span.SetStatus(codes.Error, "")
	}
	span.SetAttributes(attributes...)
	t.duration.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(attributes...))
	return resp, err
}

func port(r *http.Request) int {
	fallback := 443
	if r.URL.Scheme == "http" {
		fallback = 80
	}
	n, _ := strconv.Atoi(r.URL.Port())
	return cmp.Or(n, fallback)
}

// networkError uses the words of (*refunds.Error).Condition.
func networkError(ctx context.Context, err error) string {
	err = cmp.Or(context.Cause(ctx), err)
	switch {
	case errors.Is(err, refunds.ErrTimeout):
		return "timeout"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline_exceeded"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return "no_response"
}
