package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strconv"
	"time"

	"github.com/carddata/carddata-go/examples/tools/internal/cli"
	"github.com/carddata/carddata-go/refunds/outbox"
)

func (c *command) list(ctx context.Context, args []string) error {
	state := c.flags.String("state", string(outbox.Unknown), "the refunds of this `STATE`")
	if err := c.parse("Lists the refunds that are unknown, or those of another state, as CSV: to ask the service's\noperator about them.", args); err != nil {
		return err
	}
	s, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	defer s.close()
	entries, err := s.List(ctx, outbox.State(*state))
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
	return csv.NewWriter(c.stdout).WriteAll(rows)
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

  accepted        the service has it
  "not recorded"  the service has none of its attempts: send it again
  resubmit        send it again: the service had better get it twice than not at all
  closed          the service does not have it, and is not to get it: it becomes rejected`

func (c *command) resolve(ctx context.Context, args []string) error {
	as := c.flags.String("as", "", "the `DECISION`, as above")
	state := c.flags.String("state", string(outbox.Unknown), "the `STATE` that the rows have")
	by := c.flags.String("by", decider(), "the `NAME` of who decides")
	note := c.flags.String("note", "", "why: a `TEXT` for the log")
	if err := c.parse(resolveUsage, args); err != nil {
		return err
	}
	verdict := outbox.Verdict(*as)
	if !slices.Contains([]outbox.Verdict{outbox.Recorded, outbox.NotRecorded, outbox.Resubmit, outbox.Closed}, verdict) {
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
	entries, err := s.List(ctx, outbox.State(*state))
	if err != nil {
		return err
	}
	var chosen []outbox.Entry
	var left []error
	for _, row := range rows {
		i := slices.IndexFunc(entries, func(e outbox.Entry) bool { return e.Row == row })
		if i < 0 {
			left = append(left, fmt.Errorf("row %d: it is not %s (-state)", row, *state))
		} else {
			chosen = append(chosen, entries[i])
		}
	}
	decided, err := s.Decide(ctx, chosen, verdict, *by, *note)
	fmt.Fprintf(c.stdout, "%d refunds: %s\n", decided, verdict)
	return errors.Join(append(left, err)...)
}

const compareUsage = `Compares the service's report with the refunds, and shows what it says of them. -apply accepts
what the report has. What it does not have is for you to decide: resolve takes the rows. The
report is a CSV file with the columns account, refund_id, amount and currency, in any order
and among others. Exit code 3: refunds were not found, or there are differences.`

func (c *command) compare(ctx context.Context, args []string) error {
	name := c.flags.String("report", "", "the report, a CSV `FILE`")
	apply := c.flags.Bool("apply", false, "accept what the report has")
	by := c.flags.String("by", decider(), "the `NAME` of who decides")
	var report outbox.Report
	moment := func(name string, at *time.Time, usage string) {
		c.flags.Func(name, usage, func(text string) (err error) {
			*at, err = time.Parse(time.RFC3339, text)
			return err
		})
	}
	moment("complete-until", &report.Until, "the report has all that was recorded before this `TIME`, as in\n2026-01-31T12:00:00Z")
	moment("complete-from", &report.From, "the report has nothing that was recorded before this `TIME`")
	if err := c.parse(compareUsage, args); err != nil {
		return err
	}
	var err error
	if report.Rows, err = readReport(*name); err != nil {
		return err
	}
	s, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	defer s.close()
	comparison, err := s.Compare(ctx, report)
	if err != nil {
		return err
	}
	c.printComparison(comparison)
	if *apply {
		var accepted int
		accepted, err = s.Decide(ctx, comparison.Found, outbox.Recorded, *by, "report complete until "+stamp(report.Until))
		fmt.Fprintf(c.stdout, "%d refunds accepted\n", accepted)
	}
	if err == nil && len(comparison.NotFound)+len(comparison.Differences) > 0 {
		err = errLook
	}
	return err
}

func (c *command) printComparison(comparison *outbox.Comparison) {
	printTable(c.stdout, [][]any{
		{"accepted here already", comparison.Agreed},
		{"found", len(comparison.Found), "-apply accepts them"},
		{"not found", len(comparison.NotFound), "the report is complete and does not have them"},
		{"staying unknown", comparison.NotCovered, "not sent in the time that the report is complete for, or a row is unclear"},
		{"differences", len(comparison.Differences), "to ask the service's operator about"},
	})
	for _, d := range comparison.Differences {
		line, row := fmt.Sprint("line ", d.Line), fmt.Sprint("row ", d.Row)
		if d.Line == 0 {
			line = "not in the report"
		}
		if d.Row == 0 {
			row = "no refund here"
		}
		fmt.Fprintln(c.stdout, cli.Line(fmt.Sprintf("difference: %s, %s: %s", line, row, d.What)))
	}
	if len(comparison.NotFound) > 0 {
		fmt.Fprint(c.stdout, "to send them again: outbox resolve -as resubmit")
		for _, e := range comparison.NotFound {
			fmt.Fprint(c.stdout, " ", e.Row)
		}
		fmt.Fprintln(c.stdout)
	}
}
