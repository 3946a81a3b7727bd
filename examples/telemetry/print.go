package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// A treePrinter prints traces for people.
type treePrinter struct{ w io.Writer }

func (p *treePrinter) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	children := map[trace.SpanID][]sdktrace.ReadOnlySpan{}
	for _, span := range spans {
		children[span.Parent().SpanID()] = append(children[span.Parent().SpanID()], span)
	}
	p.print(children, trace.SpanID{}, "")
	return nil
}

func (p *treePrinter) print(children map[trace.SpanID][]sdktrace.ReadOnlySpan, parent trace.SpanID, indent string) {
	spans := children[parent]
	slices.SortFunc(spans, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	for _, span := range spans {
		status := ""
		if span.Status().Code == codes.Error {
			status = strings.TrimRight("  ERROR "+span.Status().Description, " ")
		}
		fmt.Fprintf(p.w, "%s%s  %v%s\n", indent, span.Name(), span.EndTime().Sub(span.StartTime()).Round(time.Millisecond), status)
		fmt.Fprintf(p.w, "%s    %s\n", indent, list(span.Attributes()))
		for _, event := range span.Events() {
			fmt.Fprintf(p.w, "%s    event %s: %s\n", indent, event.Name, list(event.Attributes))
		}
		p.print(children, span.SpanContext().SpanID(), indent+"  ")
	}
}

func (p *treePrinter) Shutdown(context.Context) error { return nil }

func list(attributes []attribute.KeyValue) string {
	var texts []string
	for _, a := range attributes {
		texts = append(texts, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

// A tablePrinter prints metrics for people.
type tablePrinter struct{ w io.Writer }

func (p *tablePrinter) Export(_ context.Context, metrics *metricdata.ResourceMetrics) error {
	table := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nMETRIC\tCOUNT\tSUM\tATTRIBUTES")
	for _, scope := range metrics.ScopeMetrics {
		slices.SortFunc(scope.Metrics, func(a, b metricdata.Metrics) int { return cmp.Compare(a.Name, b.Name) })
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, point := range data.DataPoints {
					fmt.Fprintf(table, "%s\t%d\t\t%s\n", m.Name, point.Value, list(point.Attributes.ToSlice()))
				}
			case metricdata.Histogram[float64]:
				for _, point := range data.DataPoints {
					fmt.Fprintf(table, "%s\t%d\t%.3f %s\t%s\n", m.Name, point.Count, point.Sum, m.Unit, list(point.Attributes.ToSlice()))
				}
			}
		}
	}
	return table.Flush()
}

func (*tablePrinter) Temporality(k sdkmetric.InstrumentKind) metricdata.Temporality {
	return sdkmetric.DefaultTemporalitySelector(k)
}

func (*tablePrinter) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(k)
}

func (*tablePrinter) ForceFlush(context.Context) error { return nil }
func (*tablePrinter) Shutdown(context.Context) error   { return nil }
