package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
	"github.com/carddata/carddata-go/examples/outbox/table"
)

const resolveUsage = `[flags] [ROW ...]

Lists the refunds whose outcome is unknown, or settles them. Ask the service's
operator what became of them first: -export writes the file to ask with.

By the operator's report: -import shows what the report would change, and with the
token at the end of that preview (-expect) changes it.

One by one: choose refunds by their rows, or by other flags and the token at the end
of the list that you looked at (-expect), and give one decision: -accepted,
-not-recorded, -resubmit or -close. The token is refused when the list has changed.

A refund is sent again no earlier than a minute after the last time: until then its
request could still leave a worker that was frozen.

Exit code: 0; 1 failed; 2 usage or configuration; 3 something is still to be looked
at.
`

type resolveFlags struct {
	refundoutbox.Filter
	refundoutbox.Decision
	expect               string
	log, seen            bool
	limit                uint
	decisions            int
	exportTo, importFrom string
	from, until          time.Time
}

func (p *process) resolve(ctx context.Context, args []string) error {
	var f resolveFlags
	flags, file := newFlags("resolve")
	flags.StringVar(&f.exportTo, "export", "", "write the unknown and the absent refunds to a new `FILE`, .csv or .json")
	flags.StringVar(&f.importFrom, "import", "", "compare the service's report, a `FILE` of account, refund_id, amount and currency:\n.csv, .tsv, .json or .jsonl")
	moment := func(at *time.Time) func(string) error {
		return func(text string) (err error) {
			if *at, err = time.Parse(time.RFC3339, text); err != nil {
				return errors.New("write a time as 2026-01-31T12:00:00Z")
			}
			return nil
		}
	}
	flags.Func("complete-until", "the report has all that was recorded before this `TIME`, as in\n2026-01-31T12:00:00Z: what is not in it becomes absent", moment(&f.until))
	flags.Func("complete-from", "the report has nothing that was recorded before this `TIME`", moment(&f.from))
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
	flags.StringVar((*string)(&f.State), "state", string(refundoutbox.Unknown), "the refunds of this `STATE`: unknown, absent, rejected or pending. Rejected ones that\na later record corrected are left out")
	flags.StringVar(&f.RefundID, "refund", "", "only those with the refund_id `ID`")
	flags.StringVar(&f.Account, "account", "", "only those of the account `ID`")
	flags.StringVar(&f.Reason, "reason", "", "only those with the reason `TEXT`, as listed")
	flags.StringVar(&f.expect, "expect", "", "the `TOKEN` at the end of the list or the preview")
	user, _ := p.env("USER")
	flags.StringVar(&f.Who, "by", user, "the `NAME` of who decides")
	flags.StringVar(&f.Note, "note", "", "why, or on whose word: a `TEXT` for the log")
	flags.BoolVar(&f.seen, "seen", false, "note that somebody looked at the responses of the rows that came late")
	flags.BoolVar(&f.log, "log", false, "list the decisions")
	flags.UintVar(&f.limit, "limit", 100, "most lines of a list, `N`")
	if err := p.parseWithArguments(flags, resolveUsage, args); err != nil {
		return err
	}
	if err := f.check(flags.Args()); err != nil {
		return err
	}
	db, err := p.openChecked(ctx, *file, false)
	if err != nil {
		return err
	}
	defer db.Close()
	differences := 0
	switch {
	case f.log:
		return p.printDecisions(ctx, db, int(f.limit))
	case f.exportTo != "":
		return p.exportUnknown(ctx, db, f.exportTo)
	case f.importFrom != "":
		differences, err = p.importReport(ctx, db, &f)
	case f.seen:
		var n int
		n, err = refundoutbox.See(ctx, db, f.Rows, f.Decision)
		fmt.Fprintf(p.stdout, "%s refunds: seen\n", table.Number(n))
	default:
		err = p.decide(ctx, db, &f)
	}
	if err != nil {
		return err
	}
	s, err := refundoutbox.Summarize(ctx, db)
	fmt.Fprintf(p.stdout, "%s unknown, %s absent\n", table.Number(s.Unknown), table.Number(s.Absent))
	if err == nil && s.Unknown+s.Absent+s.LateResponses+differences > 0 {
		return errAttention
	}
	return err
}

// check checks the flags, and which of them go together.
func (f *resolveFlags) check(args []string) error {
	for _, text := range args {
		row, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return target.Usage("outbox: a row is a number, as listed, and flags stand before it (-h helps)")
		}
		f.Rows = append(f.Rows, row)
	}
	importing, again := f.importFrom != "", f.What == refundoutbox.DecideResubmit
	states := []refundoutbox.State{refundoutbox.Unknown, refundoutbox.Absent, refundoutbox.Rejected, refundoutbox.Pending}
	switch {
	case !slices.Contains(states, f.State):
		return target.Usage("outbox: -state is unknown, absent, rejected or pending")
	case f.decisions > 1:
		return target.Usage("outbox: one decision at a time (-h helps)")
	case importing && f.What != "" && !again:
		return target.Usage("outbox: with -import, the report decides (-h helps)")
	case importing && again && f.until.IsZero():
		return target.Usage("outbox: with -import, -resubmit needs -complete-until (-h helps)")
	case !importing && !(f.until.IsZero() && f.from.IsZero()):
		return target.Usage("outbox: -complete-until and -complete-from are about a report: -import (-h helps)")
	case f.Who == "" && (importing && f.expect != "" || f.What != "" || f.seen):
		return target.Usage("outbox: who decides? (-by)")
	case f.seen && len(f.Rows) == 0:
		return target.Usage("outbox: -seen is about rows, as -log lists them (-h helps)")
	case importing || f.seen || f.What == "":
	case !refundoutbox.MayDecide(f.State, f.What):
		return target.Usage("outbox: a refund that is %s cannot be %s (-h helps)", f.State, f.What)
	case len(f.Rows) == 0 && f.expect == "":
		return target.Usage("outbox: which refunds? Give their rows, or the token of the list that you looked at: -expect (-h helps)")
	}
	return nil
}

// decide lists the refunds that the flags choose, or records the decision.
func (p *process) decide(ctx context.Context, db *refundoutbox.Database, f *resolveFlags) error {
	chosen, err := refundoutbox.List(ctx, db, f.Filter)
	switch token := refundoutbox.Token(chosen); {
	case err != nil:
		return err
	case f.What != "" && f.expect != "" && len(chosen) > 0 && f.expect != token:
		return errors.New("outbox: the list has changed since -expect, or was chosen by other flags: look at it again")
	case f.What != "":
		decided, err := refundoutbox.Decide(ctx, db, chosen, f.Decision)
		fmt.Fprintf(p.stdout, "%s refunds: %s\n", table.Number(decided), f.What)
		return err
	case len(chosen) > 0:
		err = printRefunds(p.stdout, string(f.State), chosen, int(f.limit))
		fmt.Fprintf(p.stdout, "\nto decide about all of this list: -expect %s\n", token)
	}
	return err
}

func (p *process) printDecisions(ctx context.Context, db *refundoutbox.Database, limit int) error {
	decisions, err := refundoutbox.Decisions(ctx, db, limit)
	if err != nil {
		return err
	}
	rows := [][]any{{"time", "who", "what", "row", "account", "refund_id", "attempt", "note"}}
	for _, l := range decisions {
		rows = append(rows, []any{l.At, l.Who, l.What, strconv.FormatInt(l.Row, 10), l.Account, l.RefundID, l.Attempt, strings.TrimSpace(l.Note)})
	}
	return table.Print(p.stdout, "", rows)
}
