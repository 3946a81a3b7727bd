package main

import (
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/examples/outbox/input"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
	"github.com/carddata/carddata-go/examples/outbox/table"
)

// exportUnknown writes the unknown and absent refunds to a new file.
func (p *process) exportUnknown(ctx context.Context, db *refundoutbox.Database, name string) error {
	all := []refundoutbox.Listed{}
	for _, state := range []refundoutbox.State{refundoutbox.Unknown, refundoutbox.Absent} {
		found, err := refundoutbox.List(ctx, db, refundoutbox.Filter{State: state})
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	write := writeCSV
	switch filepath.Ext(name) {
	case ".csv":
	case ".json":
		write = func(w io.Writer, all []refundoutbox.Listed) error {
			e := json.NewEncoder(w)
			e.SetIndent("", " ")
			return e.Encode(all)
		}
	default:
		return target.Usage("outbox: the format of -export does not show in its name: .csv or .json")
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return target.Usage("outbox: %v", err)
	}
	if err := errors.Join(write(file, all), file.Close()); err != nil {
		return fmt.Errorf("outbox: export: %w", err)
	}
	fmt.Fprintf(p.stdout, "%s refunds exported\n", table.Number(len(all)))
	return nil
}

func writeCSV(out io.Writer, all []refundoutbox.Listed) error {
	w := csv.NewWriter(out)
	rows := [][]string{{"account", "refund_id", "amount", "currency", "sent_at", "request_id", "state", "evidence"}}
	for _, l := range all {
		amount := ""
		if l.Amount != nil {
			amount = strconv.FormatInt(*l.Amount, 10)
		}
		rows = append(rows, []string{l.Account, l.RefundID, amount, l.Currency, l.SentAt, l.RequestID, string(l.State), l.Reason})
	}
	return w.WriteAll(rows)
}

// importReport compares the service's report with what is known here, and makes the
// changes if they are those of the token. It returns how many differences there are.
func (p *process) importReport(ctx context.Context, db *refundoutbox.Database, f *resolveFlags) (differences int, err error) {
	file, err := os.Open(f.importFrom)
	if err != nil {
		return 0, target.Usage("outbox: %v", err)
	}
	defer file.Close()
	content := sha256.New()
	rows, err := input.Read(io.TeeReader(file, content), f.importFrom, input.Report)
	if err != nil {
		return 0, err
	}
	report := &refundoutbox.Report{From: f.from, Until: f.until, Resubmit: f.What == refundoutbox.DecideResubmit}
	for row, err := range rows {
		switch {
		case err != nil:
			return 0, err
		case errors.Is(row.Err, input.ErrStopped): // the rest is not absent
			return 0, target.Usage("outbox: the report cannot be used: line %d: %v", row.Line, row.Err)
		}
		report.Rows = append(report.Rows, input.ParseReport(row))
	}
	report.ID = hex.EncodeToString(content.Sum(nil)[:8])
	plan, err := refundoutbox.Compare(ctx, db, report)
	if err != nil {
		return 0, err
	}
	if f.expect != "" && f.expect != plan.Token() {
		return 0, errors.New("outbox: the refunds or the report have changed since the preview, or its flags were others: look at it again")
	}
	if err := p.preview(plan, report); err != nil {
		return 0, err
	}
	switch {
	case plan.Changes() == 0:
		fmt.Fprintln(p.stdout, "\nnothing to change")
	case f.expect == "":
		fmt.Fprintf(p.stdout, "\nnothing is changed yet. To make these changes, run the same command with: -expect %s\n", plan.Token())
	default:
		d := f.Decision
		if d.Note == "" {
			d.Note = fmt.Sprintf("report %s, complete until %s", report.ID, f.until.Format(time.RFC3339))
		}
		changed, err := plan.Apply(ctx, db, d)
		fmt.Fprintf(p.stdout, "\n%s refunds changed\n", table.Number(changed))
		return len(plan.Differences), err
	}
	return len(plan.Differences), nil
}

func (p *process) preview(plan *refundoutbox.Plan, report *refundoutbox.Report) error {
	notCovered := "not sent in the time that the report covers"
	if report.Until.IsZero() {
		notCovered = "without -complete-until, nothing follows from what it does not have"
	}
	rows := [][]any{
		{"rows in the report", len(report.Rows)},
		{"accepted here already", plan.Agreed},
		{"to become accepted", plan.Found, "the report has them"},
		{"to become absent", plan.NotFound, "the report is complete and does not have them"},
		{"to be sent again", plan.SendAgain, "absent, and this second complete report does not have them either"},
		{"staying absent", plan.AbsentTwice, "the same; -resubmit sends them again"},
		{"staying unknown, not covered", plan.NotCovered, notCovered},
		{"staying unknown, unclear", plan.Unclear, "see the differences"},
		{"differences", len(plan.Differences), "to ask the service's operator about"},
	}
	rows = slices.DeleteFunc(rows, func(row []any) bool { return row[1] == 0 })
	if err := table.Print(p.stdout, "", rows); err != nil {
		return err
	}
	var differences [][]any
	for _, d := range plan.Differences {
		line, row := "not in the report", "no refund here"
		if d.Line > 0 {
			line = fmt.Sprintf("line %d", d.Line)
		}
		if d.Row > 0 {
			row = fmt.Sprintf("row %d", d.Row)
		}
		differences = append(differences, []any{line, row, d.What})
	}
	return table.Print(p.stdout, "differences", differences)
}
