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
)

// exportUnknown writes the unknown and absent refunds to a new file.
func (p *process) exportUnknown(ctx context.Context, db *refundoutbox.Database, name string) error {
	write, known := map[string]func(io.Writer, []refundoutbox.Listed) error{".csv": writeCSV, ".json": writeJSON}[filepath.Ext(name)]
	if !known {
		return target.Usage("outbox: the format of -export does not show in its name: .csv or .json")
	}
	unknown, err := refundoutbox.List(ctx, db, refundoutbox.Filter{State: refundoutbox.Unknown})
	if err != nil {
		return err
	}
	absent, err := refundoutbox.List(ctx, db, refundoutbox.Filter{State: refundoutbox.Absent})
	if err != nil {
		return err
	}
	all := append(append([]refundoutbox.Listed{}, unknown...), absent...) // [] in JSON, and not null
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return target.Usage("outbox: %v", err)
	}
	if err := errors.Join(write(file, all), file.Close()); err != nil {
		return fmt.Errorf("outbox: export: %w", err)
	}
	fmt.Fprintf(p.stdout, "%d refunds exported\n", len(all))
	return nil
}

func writeJSON(out io.Writer, all []refundoutbox.Listed) error {
	e := json.NewEncoder(out)
	e.SetIndent("", " ")
	return e.Encode(all)
}

func writeCSV(out io.Writer, all []refundoutbox.Listed) error {
	rows := [][]string{{"account", "refund_id", "amount", "currency", "sent_at", "request_id", "state", "evidence"}}
	for _, l := range all {
		amount := ""
		if l.Amount != nil {
			amount = strconv.FormatInt(*l.Amount, 10)
		}
		rows = append(rows, []string{l.Account, l.RefundID, amount, l.Currency, l.SentAt, l.RequestID, string(l.State), l.Reason})
	}
	return csv.NewWriter(out).WriteAll(rows)
}

// importReport compares the service's report with what is known here, and makes the
// changes if they are those of the token. It returns how many differences there are.
func (p *process) importReport(ctx context.Context, db *refundoutbox.Database, f *resolveFlags) (differences int, err error) {
	text, err := os.ReadFile(f.importFrom)
	if err != nil {
		return 0, target.Usage("outbox: %v", err)
	}
	rows, err := input.Report(text, f.importFrom)
	if err != nil {
		return 0, err
	}
	sum := sha256.Sum256(text)
	report := &refundoutbox.Report{ID: hex.EncodeToString(sum[:8]), Rows: rows, From: f.from, Until: f.until, Resubmit: f.What == refundoutbox.DecideResubmit}
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
		if f.Note == "" {
			f.Note = fmt.Sprintf("report %s, complete until %s", report.ID, f.until.Format(time.RFC3339))
		}
		var changed int
		changed, err = plan.Apply(ctx, db, f.Decision)
		fmt.Fprintf(p.stdout, "\n%d refunds changed\n", changed)
	}
	return len(plan.Differences), err
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
		{"staying unknown", plan.NotCovered, notCovered},
		{"differences", len(plan.Differences), "to ask the service's operator about"},
	}
	rows = slices.DeleteFunc(rows, func(row []any) bool { return row[1] == 0 })
	if err := printTable(p.stdout, "", rows); err != nil {
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
	return printTable(p.stdout, "differences", differences)
}
