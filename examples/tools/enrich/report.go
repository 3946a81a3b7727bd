package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
)

// Totals count the rows by their results, over all runs of a resumed job.
type totals struct {
	Rows     int64          `json:"rows"`     // known, unknown, blank or failed
	Known    int64          `json:"known"`    // in the output, with a card
	Unknown  int64          `json:"unknown"`  // in the output: the service has no card
	Blank    int64          `json:"blank"`    // in the output: they state no card
	Failed   int64          `json:"failed"`   // without a result
	Errors   map[string]int `json:"errors"`   // the failed rows by kind
	Stripped int64          `json:"stripped"` // rows whose separators were not sent
	Cached   int64          `json:"cached"`   // rows for which nothing was sent
	Distinct int            `json:"distinct"` // identifiers sent
	Requests int            `json:"requests"`
	Runs     int            `json:"runs"` // 1, and 1 more for each -resume
	Seconds  float64        `json:"seconds"`
}

func (t *totals) fail(kind string) {
	if t.Errors == nil {
		t.Errors = map[string]int{}
	}
	t.Failed++
	t.Errors[kind]++
}

// A report is how a run ended.
type report struct {
	Outcome string `json:"outcome"`
	totals
	Output     string `json:"output"`
	FailedFile string `json:"failed_file"`
}

func newReport(ctx context.Context, c *config, at checkpoint, err error) *report {
	r := &report{Outcome: "complete", totals: at.Totals, Output: c.out, FailedFile: c.failed}
	switch {
	case err != nil && ctx.Err() != nil:
		r.Outcome = "interrupted"
	case errors.Is(err, errOutage):
		r.Outcome = "outage"
	case err != nil:
		r.Outcome = "ended early"
	case r.Failed > 0:
		r.Outcome = fmt.Sprintf("complete, %s failed", humanize.Comma(r.Failed))
	}
	if r.Errors == nil {
		r.Errors = map[string]int{} // an object in JSON
	}
	return r
}

// publish prints the report.
func (r *report) publish(stdout io.Writer, asJSON bool) error {
	if asJSON {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		return out.Encode(r)
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	line := func(name string, n int64, note string) {
		if note != "" {
			note = "\t" + note
		}
		fmt.Fprintf(w, "%s\t%s%s\n", name, humanize.Comma(n), note)
	}
	line(r.Outcome, r.Rows, fmt.Sprintf("rows in %.1f s", r.Seconds))
	line("known", r.Known, "")
	line("unknown", r.Unknown, "rows whose card the service does not know")
	if r.Blank > 0 {
		line("blank", r.Blank, "rows that state no card")
	}
	line("failed", r.Failed, "rows without a result")
	for _, kind := range slices.Sorted(maps.Keys(r.Errors)) {
		line("  "+kind, int64(r.Errors[kind]), "")
	}
	if r.Stripped > 0 {
		line("stripped", r.Stripped, "rows whose card was sent without its spaces and dashes")
	}
	line("cached", r.Cached, "rows for which nothing was sent")
	line("distinct", int64(r.Distinct), "identifiers sent")
	line("requests", int64(r.Requests), "")
	if r.Runs > 1 {
		line("runs", int64(r.Runs), "")
	}
	fmt.Fprintf(w, "output\t%s\n", r.Output)
	if r.Failed > 0 {
		fmt.Fprintf(w, "failed\t%s\n", r.FailedFile)
	}
	return w.Flush()
}
