package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/examples/outbox/input"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
)

const resolveUsage = `Lists the refunds whose outcome is unknown, or settles them: by the service's report
(-export, and then -import), or by a decision about the ROWs that follow the flags, or
about the whole list. Each list and each preview of a report ends with a token: confirm
it with -expect.

Exit code 3: something is still to be looked at.`

type resolveFlags struct {
	refundoutbox.Filter
	refundoutbox.Decision
	expect               string
	log                  bool
	decisions            int
	exportTo, importFrom string
	from, until          time.Time
}

func (p *process) resolve(ctx context.Context, args []string) error {
	f, err := p.resolveFlags(args)
	if err != nil {
		return err
	}
	db, err := p.open(ctx, false, false)
	if err != nil {
		return err
	}
	defer db.Close()
	differences := 0
	switch {
	case f.log:
		return p.printDecisions(ctx, db)
	case f.exportTo != "":
		return p.exportUnknown(ctx, db, f.exportTo)
	case f.importFrom != "":
		differences, err = p.importReport(ctx, db, f)
	default:
		err = p.decide(ctx, db, f)
	}
	if err != nil {
		return err
	}
	s, err := refundoutbox.Summarize(ctx, db)
	fmt.Fprintf(p.stdout, "%d unknown, %d absent\n", s.Unknown, s.Absent)
	if err == nil && s.Unknown+s.Absent+s.LateResponses+differences > 0 {
		return exitAttention
	}
	return err
}

// resolveFlags parses the flags, and checks which of them go together.
func (p *process) resolveFlags(args []string) (*resolveFlags, error) {
	f, flags := new(resolveFlags), p.flags
	flags.StringVar(&f.exportTo, "export", "", "write the unknown and the absent refunds to a new `FILE`, .csv or .json")
	flags.StringVar(&f.importFrom, "import", "", "compare the service's report, a `FILE` of account, refund_id, amount and currency:\n.csv, .tsv, .json or .jsonl")
	moment := func(name string, at *time.Time, usage string) {
		flags.Func(name, usage, func(text string) (err error) {
			*at, err = time.Parse(time.RFC3339, text)
			return err
		})
	}
	moment("complete-until", &f.until, "the report has all that was recorded before this `TIME`, as in\n2026-01-31T12:00:00Z: what is not in it becomes absent")
	moment("complete-from", &f.from, "the report has nothing that was recorded before this `TIME`")
	decision := func(name string, what refundoutbox.Event, usage string) {
		flags.BoolFunc(name, usage, func(string) error {
			f.What, f.decisions = what, f.decisions+1
			return nil
		})
	}
	decision("accepted", refundoutbox.DecideAccepted, "the service has it")
	decision("not-recorded", refundoutbox.DecideNotRecorded, "the service does not have it: send it again")
	decision("resubmit", refundoutbox.DecideResubmit, "nobody knows: send it again, and the service may have it twice. With -import: send\nagain what a second complete report does not have either")
	decision("close", refundoutbox.DecideClosed, "the service does not have it, and is not to get it: it becomes rejected")
	decision("seen", refundoutbox.Seen, "no decision: somebody looked at the late responses of these rows")
	flags.StringVar((*string)(&f.State), "state", string(refundoutbox.Unknown), "the refunds of this `STATE`: unknown, absent, rejected or pending. Rejected ones that\na later record corrected are left out")
	flags.StringVar(&f.Reason, "reason", "", "only those with the reason `TEXT`, as listed")
	flags.StringVar(&f.expect, "expect", "", "the `TOKEN` at the end of the list or the preview")
	user, _ := p.env("USER")
	flags.StringVar(&f.Who, "by", user, "the `NAME` of who decides")
	flags.StringVar(&f.Note, "note", "", "why, or on whose word: a `TEXT` for the log")
	flags.BoolVar(&f.log, "log", false, "list the decisions")
	if err := p.parse(resolveUsage, args); err != nil {
		return nil, err
	}
	for _, text := range flags.Args() {
		row, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, target.Usage("outbox: a row is a number, as listed, and flags stand before it (-h helps)")
		}
		f.Rows = append(f.Rows, row)
	}
	importing, again := f.importFrom != "", f.What == refundoutbox.DecideResubmit
	states := []refundoutbox.State{refundoutbox.Unknown, refundoutbox.Absent, refundoutbox.Rejected, refundoutbox.Pending}
	wrong := ""
	switch {
	case !slices.Contains(states, f.State):
		wrong = "-state is unknown, absent, rejected or pending"
	case f.decisions > 1:
		wrong = "one decision at a time"
	case importing && f.What != "" && !again:
		wrong = "with -import, the report decides"
	case importing && again && f.until.IsZero():
		wrong = "with -import, -resubmit needs -complete-until"
	case !importing && !(f.until.IsZero() && f.from.IsZero()):
		wrong = "-complete-until and -complete-from are about a report: -import"
	case f.Who == "" && (importing && f.expect != "" || f.What != ""):
		wrong = "who decides? (-by)"
	case f.What == refundoutbox.Seen && len(f.Rows) == 0:
		wrong = "-seen is about rows, as -log lists them"
	case importing || f.What == refundoutbox.Seen || f.What == "":
	case !refundoutbox.Possible(f.State, f.What):
		wrong = fmt.Sprintf("a refund that is %s cannot be %s", f.State, f.What)
	case len(f.Rows) == 0 && f.expect == "":
		wrong = "which refunds? Give their rows, or the token of the list that you looked at: -expect"
	}
	if wrong != "" {
		return nil, target.Usage("outbox: %s (-h helps)", wrong)
	}
	return f, nil
}

// decide lists the refunds that the flags choose, or records the decision.
func (p *process) decide(ctx context.Context, db *refundoutbox.Database, f *resolveFlags) error {
	if f.What == refundoutbox.Seen {
		n, err := refundoutbox.See(ctx, db, f.Rows, f.Decision)
		fmt.Fprintf(p.stdout, "%d refunds: seen\n", n)
		return err
	}
	chosen, err := refundoutbox.List(ctx, db, f.Filter)
	switch token := refundoutbox.Token(chosen); {
	case err != nil || f.What == "" && len(chosen) == 0:
		return err
	case f.What == "":
		p.printRefunds(string(f.State), chosen)
		fmt.Fprintf(p.stdout, "\nto decide about all of this list: -expect %s\n", token)
	case f.expect != "" && len(chosen) > 0 && f.expect != token:
		return errors.New("outbox: the list has changed since -expect, or was chosen by other flags: look at it again")
	default:
		var decided int
		decided, err = refundoutbox.Decide(ctx, db, chosen, f.Decision)
		fmt.Fprintf(p.stdout, "%d refunds: %s\n", decided, f.What)
	}
	return err
}

// printRefunds prints a table of refunds: nothing of a record but what identifies it.
func (p *process) printRefunds(title string, refunds []refundoutbox.Listed) {
	rows := [][]any{{"row", "account", "refund_id", "amount", "attempt", "sent", "request_id", "reason"}}
	for _, l := range refunds {
		rows = append(rows, []any{l.Row, l.Account, l.RefundID, l.Money(), l.Attempt, l.SentAt, l.RequestID, l.Reason})
	}
	printTable(p.stdout, title, rows)
}

func (p *process) printDecisions(ctx context.Context, db *refundoutbox.Database) error {
	decisions, err := refundoutbox.Decisions(ctx, db)
	rows := [][]any{{"time", "who", "what", "row", "account", "refund_id", "attempt", "note"}}
	for _, l := range decisions {
		rows = append(rows, []any{l.DecidedAt, l.Who, l.What, l.Row, l.Account, l.RefundID, l.Attempt, strings.TrimSpace(l.Note)})
	}
	printTable(p.stdout, "", rows)
	return err
}

// exportUnknown writes the unknown and absent refunds to a new file.
func (p *process) exportUnknown(ctx context.Context, db *refundoutbox.Database, name string) error {
	format := filepath.Ext(name)
	if format != ".csv" && format != ".json" {
		return target.Usage("outbox: the format of -export does not show in its name: .csv or .json")
	}
	all, err := refundoutbox.List(ctx, db, refundoutbox.Filter{})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return target.Usage("outbox: %v", err)
	}
	if format == ".csv" {
		err = writeCSV(file, all)
	} else {
		err = json.MarshalWrite(file, all, jsontext.Multiline(true))
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("outbox: export: %w", err)
	}
	fmt.Fprintf(p.stdout, "%d refunds exported\n", len(all))
	return nil
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
	p.preview(plan, len(rows))
	switch {
	case plan.Changes() == 0:
		fmt.Fprintln(p.stdout, "\nnothing to change")
	case f.expect == "":
		fmt.Fprintf(p.stdout, "\nnothing is changed yet. To make these changes, run the same command with: -expect %s\n", plan.Token())
	default:
		f.Note = cmp.Or(f.Note, fmt.Sprintf("report %s, complete until %s", report.ID, f.until.Format(time.RFC3339)))
		var changed int
		changed, err = plan.Apply(ctx, db, f.Decision)
		fmt.Fprintf(p.stdout, "\n%d refunds changed\n", changed)
	}
	return len(plan.Differences), err
}

func (p *process) preview(plan *refundoutbox.Plan, rows int) {
	table := [][]any{
		{"rows in the report", rows},
		{"accepted here already", plan.Agreed},
		{"to become accepted", plan.Found, "the report has them"},
		{"to become absent", plan.NotFound, "the report is complete and does not have them"},
		{"to be sent again", plan.SendAgain, "absent, and this second complete report does not have them either"},
		{"staying absent", plan.AbsentTwice, "the same; -resubmit sends them again"},
		{"staying unknown", plan.NotCovered, "not sent in the time that the report is complete for (-complete-until)"},
		{"differences", len(plan.Differences), "to ask the service's operator about"},
	}
	printTable(p.stdout, "", slices.DeleteFunc(table, func(row []any) bool { return row[1] == 0 }))
	var differences [][]any
	for _, d := range plan.Differences {
		differences = append(differences, []any{numbered("line", int64(d.Line), "not in the report"), numbered("row", d.Row, "no refund here"), d.What})
	}
	printTable(p.stdout, "differences", differences)
}

func numbered(name string, n int64, none string) string {
	if n == 0 {
		return none
	}
	return fmt.Sprint(name, " ", n)
}
