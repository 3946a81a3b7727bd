package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carddata/carddata-go/examples/tools/internal/cli"
	"github.com/carddata/carddata-go/refunds/outbox"
)

func (c *command) list(ctx context.Context, args []string) error {
	state := c.flags.String("state", "", "the refunds of this `STATE` (default unknown and absent)")
	asCSV := c.flags.Bool("csv", false, "as CSV, to ask the service's operator about them")
	if err := c.parse("Lists the refunds that are unknown or absent, or those of another state.", args); err != nil {
		return err
	}
	filter := outbox.Filter{States: []outbox.State{outbox.Unknown, outbox.Absent}}
	if *state != "" {
		filter.States = []outbox.State{outbox.State(*state)}
	}
	s, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	defer s.close()
	entries, err := s.List(ctx, filter)
	if err != nil {
		return err
	}
	rows := [][]string{{"row", "state", "account", "refund_id", "amount", "currency", "attempts", "sent_at", "request_id", "reason"}}
	for _, e := range entries {
		amount := ""
		if e.Amount != nil {
			amount = strconv.FormatInt(*e.Amount, 10)
		}
		rows = append(rows, []string{fmt.Sprint(e.Row), string(e.State), e.AccountID, e.RefundID, amount, e.Currency,
			fmt.Sprint(e.Attempts), stamp(e.LastSent), e.RequestID, e.Reason})
	}
	if *asCSV {
		return csv.NewWriter(c.stdout).WriteAll(rows)
	}
	printTable(c.stdout, "", rows)
	return nil
}

// decider names the user for the log.
func decider() string {
	if current, err := user.Current(); err == nil {
		return current.Username
	}
	return "unnamed"
}

const resolveUsage = `Records a decision about the ROWs that follow the flags. Each row that nothing was decided
about is named, with the reason, and the exit code is 1.

  accepted      the service has it
  not-recorded  the service does not have it: send it again
  resubmit      nobody knows: send it again, and the service may have it twice
  closed        the service does not have it, and is not to get it: it becomes rejected
  seen          no decision: somebody looked at the late responses of these rows`

func (c *command) resolve(ctx context.Context, args []string) error {
	as := c.flags.String("as", "", "the `DECISION`, as above")
	state := c.flags.String("state", "", "the `STATE` that the rows have (default unknown or absent)")
	by := c.flags.String("by", decider(), "the `NAME` of who decides")
	note := c.flags.String("note", "", "why: a `TEXT` for the log")
	if err := c.parse(resolveUsage, args); err != nil {
		return err
	}
	verdict := outbox.Verdict(strings.ReplaceAll(*as, "-", " "))
	if !slices.Contains([]outbox.Verdict{outbox.Recorded, outbox.NotRecorded, outbox.Resubmit, outbox.Closed, outbox.Seen}, verdict) {
		return cli.Usage("outbox: -as names no decision (-h helps)")
	}
	var rows []int64
	for _, text := range c.flags.Args() {
		row, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return cli.Usage("outbox: a row is a number, as listed, and flags stand before it (-h helps)")
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return cli.Usage("outbox: which rows? (-h helps)")
	}
	s, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	defer s.close()
	entries, err := s.List(ctx, outbox.Filter{Rows: rows})
	if err != nil {
		return err
	}
	states := []outbox.State{outbox.Unknown, outbox.Absent}
	if *state != "" {
		states = []outbox.State{outbox.State(*state)}
	}
	var chosen []outbox.Entry
	var left []error
	for _, row := range rows {
		i := slices.IndexFunc(entries, func(e outbox.Entry) bool { return e.Row == row })
		switch {
		case i < 0:
			left = append(left, fmt.Errorf("row %d: there is no such refund", row))
		case verdict != outbox.Seen && !slices.Contains(states, entries[i].State):
			left = append(left, fmt.Errorf("row %d: it is %s, and the decision is about %s (-state)", row, entries[i].State, states))
		default:
			chosen = append(chosen, entries[i])
		}
	}
	decided, err := s.Decide(ctx, chosen, verdict, *by, *note)
	fmt.Fprintf(c.stdout, "%d refunds: %s\n", decided, verdict)
	return errors.Join(append(left, err)...)
}

func (c *command) log(ctx context.Context, args []string) error {
	if err := c.parse("Lists the decisions and the late responses, the latest first.", args); err != nil {
		return err
	}
	s, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	defer s.close()
	decisions, err := s.Decisions(ctx)
	if err != nil {
		return err
	}
	rows := [][]any{{"time", "who", "what", "row", "account", "refund_id", "attempt", "note"}}
	for _, d := range decisions {
		rows = append(rows, []any{stamp(d.At), d.By, d.What, d.Row, d.AccountID, d.RefundID, d.Attempt, d.Why})
	}
	printTable(c.stdout, "", rows)
	return nil
}

const compareUsage = `Compares the service's report with the refunds, and shows what it would change. -apply makes
the changes. The report is a CSV file with the columns account, refund_id, amount and
currency, in any order and among others. Exit code 3: there are differences to ask the
service's operator about.`

func (c *command) compare(ctx context.Context, args []string) error {
	name := c.flags.String("report", "", "the report, a CSV `FILE`")
	apply := c.flags.Bool("apply", false, "make the changes")
	by := c.flags.String("by", decider(), "the `NAME` of who decides")
	var report outbox.Report
	moment := func(name string, at *time.Time, usage string) {
		c.flags.Func(name, usage, func(text string) (err error) {
			*at, err = time.Parse(time.RFC3339, text)
			return err
		})
	}
	moment("complete-until", &report.Until, "the report has all that was recorded before this `TIME`, as in\n2026-01-31T12:00:00Z: what is not in it becomes absent. A report is later than\nanother if this time is")
	moment("complete-from", &report.From, "the report has nothing that was recorded before this `TIME`")
	c.flags.BoolVar(&report.Resubmit, "resubmit", false, "send again what a later complete report does not have either")
	if err := c.parse(compareUsage, args); err != nil {
		return err
	}
	var err error
	if report.Rows, err = readReport(*name); err != nil {
		return err
	}
	if report.Resubmit && report.Until.IsZero() {
		return cli.Usage("outbox: -resubmit needs -complete-until (-h helps)")
	}
	s, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	defer s.close()
	plan, err := s.Compare(ctx, report)
	if err != nil {
		return err
	}
	c.printPlan(plan)
	if *apply {
		var changed int
		changed, err = plan.Apply(ctx, *by, "report complete until "+stamp(report.Until))
		fmt.Fprintf(c.stdout, "%d refunds changed\n", changed)
	} else {
		fmt.Fprintln(c.stdout, "nothing is changed (-apply makes these changes)")
	}
	if err == nil && len(plan.Differences) > 0 {
		err = errLook
	}
	return err
}

func (c *command) printPlan(plan *outbox.Plan) {
	printTable(c.stdout, "", [][]any{
		{"accepted here already", plan.Agreed},
		{"to become accepted", len(plan.Found), "the report has them"},
		{"to become absent", len(plan.NotFound), "the report is complete and does not have them"},
		{"to be sent again", len(plan.SendAgain), "absent, and this later complete report does not have them either"},
		{"staying absent", plan.StillAbsent, "the same; -resubmit sends them again"},
		{"staying absent", plan.NothingNew, "this report is not later than the one before, or does not cover them"},
		{"staying unknown", plan.NotCovered, "not sent in the time that the report is complete for"},
		{"differences", len(plan.Differences), "to ask the service's operator about"},
	})
	var differences [][]any
	for _, d := range plan.Differences {
		line, row := fmt.Sprint("line ", d.Line), fmt.Sprint("row ", d.Row)
		if d.Line == 0 {
			line = "not in the report"
		}
		if d.Row == 0 {
			row = "no refund here"
		}
		differences = append(differences, []any{line, row, d.What})
	}
	printTable(c.stdout, "differences", differences)
}
