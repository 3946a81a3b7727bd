package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math"
	"strconv"
	"text/tabwriter"

	"github.com/carddata/carddata-go/examples/internal/target"
)

const resolveUsage = `usage: outbox resolve [flags] [ROW ...]

Lists the refunds whose outcome is unknown or, with one of the decisions, records
it for those that are chosen, by row or by flag. Ask the service's operator what
became of them before you decide.

Decisions:
  -accepted        the service has it
  -not-recorded    the service has it not: it is sent again
  -resubmit        nobody knows: it is sent again, and the service may have it twice

Which refunds:
  ROW ...          those of the rows, as listed
  -refund ID       those with the refund_id
  -reason TEXT     those with the reason, as listed
  -all             all of them
  -rejected        not the unknown but the rejected ones; their only decision is
                   -resubmit, when what the service objected to is corrected there

  -by NAME         who decides ($USER)
  -note TEXT       why, or on whose word
  -log             lists the decisions instead
  -db FILE         the SQLite file, ` + defaultFile + `
  -limit N         most lines of a list (100)

Exit code: 0; 1 failed; 2 usage or configuration; 3 refunds still await a decision.
`

type resolveFlags struct {
	filter
	decision
	limit int
	log   bool
}

func (p *process) resolve(ctx context.Context, args []string) (int, error) {
	var at location
	f := resolveFlags{filter: filter{state: unknown}}
	flags := flag.NewFlagSet("outbox resolve", flag.ContinueOnError)
	at.flag(flags)
	given := map[string]*bool{}
	for name := range map[string]bool{"accepted": true, "not-recorded": true, "resubmit": true, "all": true, "rejected": true} {
		given[name] = flags.Bool(name, false, "")
	}
	flags.StringVar(&f.refundID, "refund", "", "")
	flags.StringVar(&f.reason, "reason", "", "")
	flags.StringVar(&f.who, "by", "", "")
	flags.StringVar(&f.note, "note", "", "")
	flags.BoolVar(&f.log, "log", false, "")
	flags.IntVar(&f.limit, "limit", 100, "")
	if code, ok := p.parse(flags, resolveUsage, args); !ok {
		return code, nil
	}
	for _, text := range flags.Args() {
		row, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, target.Usage("outbox: a row is a number, as listed, and flags stand before it (-h helps)")
		}
		f.rows = append(f.rows, row)
	}
	decided := 0
	for name, what := range map[string]string{"accepted": decidedAccepted, "not-recorded": decidedNotRecorded, "resubmit": decidedResubmit} {
		if *given[name] {
			f.what = what
			decided++
		}
	}
	if *given["rejected"] {
		f.state = rejected
	}
	user, _ := p.env("USER")
	f.who = cmp.Or(f.who, user)
	switch {
	case decided > 1:
		return 0, target.Usage("outbox: one decision at a time (-h helps)")
	case decided == 0 || f.log:
	case f.state == rejected && f.what != decidedResubmit:
		return 0, target.Usage("outbox: a rejected refund can only be submitted again (-h helps)")
	case f.all() != *given["all"]:
		return 0, target.Usage("outbox: choose the refunds by row, -refund or -reason, or -all of them (-h helps)")
	case f.who == "":
		return 0, target.Usage("outbox: who decides? (-by)")
	}
	db, err := p.open(ctx, at)
	if err != nil {
		return 0, err
	}
	defer db.close()
	switch {
	case f.log:
		return 0, p.printDecisions(ctx, db, f.limit)
	case f.what != "":
		err = p.decideAll(ctx, db, &f)
	default:
		err = printRefunds(ctx, p.stdout, db, f.state, f.filter, f.limit)
	}
	if err != nil {
		return 0, err
	}
	s, err := summarize(ctx, db)
	fmt.Fprintf(p.stdout, "%s unknown, awaiting a decision\n", grouped(s.Unknown))
	if err == nil && s.Unknown > 0 {
		return exitAttention, nil
	}
	return 0, err
}

// decideAll records the decision for the chosen refunds. Each is decided about as
// it was chosen: not about another attempt, of which nobody has said anything.
func (p *process) decideAll(ctx context.Context, db database, f *resolveFlags) error {
	var chosen []listed
	err := f.each(ctx, db, math.MaxInt32, func(r listed) error {
		chosen = append(chosen, r)
		return nil
	})
	if err != nil {
		return err
	}
	decided := 0
	for _, r := range chosen {
		err := db.transact(ctx, func(tx transaction) error {
			done, err := decide(ctx, tx, r.row, r.attempt, f.state, f.decision, 0)
			if done {
				decided++
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(p.stdout, "%s refunds: %s\n", grouped(decided), f.what)
	return err
}

func (p *process) printDecisions(ctx context.Context, db session, limit int) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "time\twho\twhat\trow\trefund_id\tattempt\tnote")
	err := db.query(ctx, func(scan scanner) error {
		var at, who, what, refundID, note string
		var row int64
		var attempt int
		if err := scan(&at, &who, &what, &row, &refundID, &attempt, &note); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%d\t%s\n", at, printable(who), what, row, printable(refundID), attempt, printable(note))
		return err
	}, `SELECT d.decided_at, d.who, d.what, r.id, r.refund_id, d.attempt, d.note
		FROM outbox_decision AS d JOIN outbox_refund AS r ON r.id = d.refund ORDER BY d.id DESC LIMIT $1`, limit)
	if err != nil {
		return err
	}
	return w.Flush()
}
