package instrument

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/carddata/carddata-go/refunds"
)

// An attemptTransport makes a client span for each request, and records
// http.client.request.duration with the same attributes. otelhttp would put the path, which
// holds an id, and the text of network errors into its spans, and sets error.type for an
// error status in spans but not in metrics.
//
// No trace header is added to the request, because the service does not document one.
type attemptTransport struct {
	base     http.RoundTripper
	tracer   trace.Tracer
	duration metric.Float64Histogram
	route    string // the path's template
}

func (t *attemptTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	a := &attempt{began: time.Now(), duration: t.duration, attributes: []attribute.KeyValue{
		semconv.HTTPRequestMethodKey.String(r.Method),
		semconv.URLTemplate(t.route),
		semconv.ServerAddress(r.URL.Hostname()),
		semconv.ServerPort(port(r)),
	}}
	a.ctx, a.span = t.tracer.Start(r.Context(), r.Method+" "+t.route, trace.WithSpanKind(trace.SpanKindClient))
	a.span.SetAttributes(semconv.URLFull(r.URL.Scheme + "://" + r.URL.Host + t.route))
	if c := callOf(r.Context()); c != nil {
		if n := int(c.requests.Add(1)) - 1; n > 0 {
			a.span.SetAttributes(semconv.HTTPRequestResendCount(n))
		}
	}
	resp, err := t.base.RoundTrip(r.WithContext(a.ctx))
	if err != nil {
		a.end(networkError(a.ctx, err, "no_response"))
		return nil, err
	}
	a.attributes = append(a.attributes, semconv.HTTPResponseStatusCode(resp.StatusCode))
	if resp.StatusCode >= http.StatusBadRequest {
		a.status = strconv.Itoa(resp.StatusCode)
	}
	resp.Body = &attemptBody{resp.Body, a}
	return resp, nil
}

func port(r *http.Request) int {
	fallback := 443
	if r.URL.Scheme == "http" {
		fallback = 80
	}
	n, _ := strconv.Atoi(r.URL.Port())
	return cmp.Or(n, fallback)
}

// An attempt ends with the body of its response.
type attempt struct {
	ctx        context.Context
	span       trace.Span
	began      time.Time
	duration   metric.Float64Histogram
	attributes []attribute.KeyValue // of the span and the metric
	status     string               // of an error response; otherwise ""
	once       sync.Once
}

// end ends the attempt once. errorType is "" for a response that was read or closed early.
func (a *attempt) end(errorType string) {
	a.once.Do(func() {
		if errorType = cmp.Or(a.status, errorType); errorType != "" {
			a.attributes = append(a.attributes, semconv.ErrorTypeKey.String(errorType))
			a.span.SetStatus(codes.Error, "")
		}
		a.span.SetAttributes(a.attributes...)
		a.duration.Record(a.ctx, time.Since(a.began).Seconds(), metric.WithAttributes(a.attributes...))
		a.span.End()
	})
}

// networkError uses the words of (*refunds.Error).Condition.
func networkError(ctx context.Context, err error, otherwise string) string {
	err = cmp.Or(context.Cause(ctx), err)
	switch {
	case errors.Is(err, refunds.ErrTimeout):
		return "timeout"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline_exceeded"
	case errors.Is(err, context.Canceled):
		return "canceled"
	default:
		return otherwise
	}
}

type attemptBody struct {
	io.ReadCloser
	attempt *attempt
}

func (b *attemptBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.attempt.end("")
	} else if err != nil {
		b.attempt.end(networkError(b.attempt.ctx, err, "bad_response"))
	}
	return n, err
}

func (b *attemptBody) Close() error {
	b.attempt.end("")
	return b.ReadCloser.Close()
}
