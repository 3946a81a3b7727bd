package main

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// A call collects what its attempts and events say. The context carries it.
type call struct {
	requests atomic.Int64
	reported atomic.Pointer[[]attribute.KeyValue] // by the event that ends the call
}

type callKey struct{}

// callOf returns nil outside of observe.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// observe runs one call of a client in a span of its own. The span has the attributes of
// the metric that the call's event records.
func (t *telemetry) observe(ctx context.Context, service, operation string, do func(context.Context) error) error {
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
		if reported == nil { // a refused argument makes no event
			attributes = append(attributes, semconv.ErrorTypeKey.String(errorType))
			t.events.calls.Record(ctx, 0, metric.WithAttributes(slices.Clip(attributes)...))
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

// describe returns error.type and a text that holds no id. The text of an error
// from elsewhere may hold one.
func describe(err error) (errorType, text string) {
	if e, ok := errors.AsType[libraryError](err); ok {
		return e.Condition(), e.Error()
	}
	return "_OTHER", ""
}
