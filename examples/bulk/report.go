package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/carddata/carddata-go/examples/internal/target"
)

// Totals count what became of the rows, over all runs that were resumed.
type totals struct {
	Rows     int64          `json:"rows"`     // known, unknown or failed
	Known    int64          `json:"known"`    // in the output, with a card
	Unknown  int64          `json:"unknown"`  // in the output: the service has no card
	Failed   int64          `json:"failed"`   // without an answer
	Kept     int64          `json:"kept"`     // of them, in the output (-keep-failed)
	Errors   map[string]int `json:"errors"`   // the failed rows by kind
	Stripped int64          `json:"stripped"` // rows whose separators were not sent
	Cached   int64          `json:"cached"`   // rows for which nothing was sent
	Distinct int            `json:"distinct"` // identifiers sent
	Requests int            `json:"requests"` // sent, repetitions included
	Retries  int            `json:"retries"`  // of them
	// Answers that a range around theirs contradicts.
	Conflicts int64   `json:"range_conflicts"`
	Runs      int     `json:"runs"` // 1, and 1 more for each -resume
	Seconds   float64 `json:"seconds"`
}

func (t totals) clone() totals {
	t.Errors = maps.Clone(t.Errors)
	return t
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
	RowsPerSecond float64 `json:"rows_per_second"`
	Output        string  `json:"output"`
	FailedFile    string  `json:"failed_file"`
}

func newReport(ctx context.Context, c *config, at checkpoint, err error) *report {
	r := &report{Outcome: "complete", totals: at.Totals, Output: c.out, FailedFile: c.failed}
	switch {
	case err != nil && ctx.Err() != nil:
		r.Outcome = "interrupted"
	case errors.Is(err, errUnanswered):
		r.Outcome = "outage"
	case err != nil:
		r.Outcome = "ended early"
	case r.Failed > 0:
		r.Outcome = fmt.Sprintf("complete, %s failed", grouped(r.Failed))
	}
	if r.Errors == nil {
		r.Errors = map[string]int{} // an object in JSON
	}
	if r.Seconds > 0 {
		r.RowsPerSecond = float64(r.Rows) / r.Seconds
	}
	return r
}

// publish prints the report, and writes it as JSON if a path is given.
func (r *report) publish(stdout io.Writer, path string) error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	line := func(name string, n int, note string) {
		if note != "" {
			note = "\t" + note
		}
		fmt.Fprintf(w, "%s\t%s%s\n", name, grouped(int64(n)), note)
	}
	line(r.Outcome, int(r.Rows), fmt.Sprintf("rows in %.1f s, %s rows/s", r.Seconds, grouped(int64(r.RowsPerSecond))))
	line("known", int(r.Known), "")
	line("unknown", int(r.Unknown), "rows whose card the service does not know")
	line("failed", int(r.Failed), "rows without an answer")
	if r.Kept > 0 {
		line("  kept", int(r.Kept), "of them in the output, with the reason as their error")
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Errors)) {
		line("  "+kind, r.Errors[kind], "")
	}
	if r.Stripped > 0 {
		line("stripped", int(r.Stripped), "rows whose card was sent without its spaces and dashes")
	}
	line("cached", int(r.Cached), "rows for which nothing was sent")
	line("distinct", r.Distinct, "identifiers sent")
	line("requests", r.Requests, fmt.Sprintf("of them %s retries", grouped(int64(r.Retries))))
	if r.Conflicts > 0 {
		line("conflicts", int(r.Conflicts), "ranges within others that have another answer; the narrower one was used")
	}
	if r.Runs > 1 {
		line("runs", r.Runs, "")
	}
	fmt.Fprintf(w, "output\t%s\n", target.Path(r.Output))
	if r.Failed > r.Kept {
		fmt.Fprintf(w, "failed\t%s\n", target.Path(r.FailedFile))
	}
	if err := w.Flush(); err != nil || path == "" {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(path, append(text, '\n'))
}

// grouped writes 1234567 as 1,234,567.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var parts []string
	for len(digits) > 3 {
		parts = append(parts, digits[len(digits)-3:])
		digits = digits[:len(digits)-3]
	}
	parts = append(parts, digits)
	slices.Reverse(parts)
	return strings.Join(parts, ",")
}
