package main

import (
	_ "embed"
	"fmt"
	"io"
	"text/template"
)

//go:embed chart.svg.tmpl
var chartSource string

var chartTemplate = template.Must(template.New("chart").Parse(chartSource))

// In pixels.
const (
	chartLeft  = 20
	chartWidth = 600 // of the longest bar
	chartTop   = 66
	rowHeight  = 62
)

// A row is a bar with its text.
type row struct {
	*result
	Numbers                     string
	Y, BarY                     int
	Accepted, Refused, RefusedX float64
}

// draw writes the report as an SVG picture: a bar for each strategy, as long as
// what arrived is of the quota.
func (r *report) draw(w io.Writer) error {
	longest := 100.0
	for _, s := range r.Results {
		longest = max(longest, s.Throughput+s.Excess)
	}
	unit := chartWidth / longest
	var rows []row
	for i, s := range r.Results {
		y := chartTop + rowHeight*i
		accepted := s.Throughput * unit
		rows = append(rows, row{
			result:  s,
			Numbers: fmt.Sprintf("%.0f %% of the quota, %d × 429, p99 wait %.2f s", s.Throughput, s.Refused, s.WaitP99),
			Y:       y, BarY: y + 9,
			Accepted: accepted, Refused: s.Excess * unit, RefusedX: chartLeft + accepted,
		})
	}
	foot := chartTop + rowHeight*len(rows) - 16
	return chartTemplate.Execute(w, map[string]any{
		"Quota": r.Quota, "Replicas": r.Replicas, "Rows": rows, "QuotaX": chartLeft + 100*unit,
		"Foot": foot, "LegendY": foot + 20, "KeyY": foot + 10, "Height": foot + 36,
	})
}
