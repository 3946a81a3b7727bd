package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"strconv"

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
  -account ID      only those of the account; needed where several have the refund_id
  -reason TEXT     those with the reason, as listed
  -all             all of them
  -expect TOKEN    the token at the end of the list that you looked at: needed with
                   -refund, -reason and -all, and refused when the list has changed
  -rejected        not the unknown but the rejected ones; their only decision is
                   -resubmit, when what the service objected to is corrected there.
                   Those with a later record of their refund_id that was not rejected
                   are left out
  -superseded      does not leave them out: the old record is sent after the later one

A refund is sent again no earlier than a minute after the last time: until then its
request could still leave a worker that was frozen.

  -seen            notes that somebody looked at answers that came after a decision
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
	expect string
	limit  int
	log    bool
}

func (p *process) resolve(ctx context.Context, args []string) (int, error) {
	var at location
	f := resolveFlags{filter: filter{state: unknown}}
	flags := flag.NewFlagSet("outbox resolve", flag.ContinueOnError)
	at.flag(flags)
	given := map[string]*bool{}
	for name := range map[string]bool{"accepted": true, "not-recorded": true, "resubmit": true, "seen": true, "all": true, "rejected": true, "superseded": true} {
		given[name] = flags.Bool(name, false, "")
	}
	flags.StringVar(&f.refundID, "refund", "", "")
	flags.StringVar(&f.account, "account", "", "")
	flags.StringVar(&f.reason, "reason", "", "")
	flags.StringVar(&f.expect, "expect", "", "")
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
	for name, what := range map[string]string{"accepted": decidedAccepted, "not-recorded": decidedNotRecorded, "resubmit": decidedResubmit, "seen": decidedSeen} {
		if *given[name] {
			f.what = what
			decided++
		}
	}
	if *given["rejected"] {
		f.state, f.current = rejected, !*given["superseded"]
	}
	user, _ := p.env("USER")
	f.who = cmp.Or(f.who, user)
	switch {
	case decided > 1:
		return 0, target.Usage("outbox: one decision at a time (-h helps)")
	case decided == 0 || f.log:
	case f.state == rejected && f.what != decidedResubmit:
		return 0, target.Usage("outbox: a rejected refund can only be submitted again (-h helps)")
	case f.what == decidedSeen && len(f.rows) == 0:
		return 0, target.Usage("outbox: -seen is about rows, as status lists them (-h helps)")
	case f.all() != *given["all"]:
		return 0, target.Usage("outbox: choose the refunds by row, -refund or -reason, or -all of them (-h helps)")
	case len(f.rows) == 0 && f.expect == "":
		return 0, target.Usage("outbox: give the token of the list that you looked at: -expect (-h helps)")
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
	case f.what == decidedSeen:
		err = p.seen(ctx, db, &f)
	case f.what != "":
		err = p.decideAll(ctx, db, &f)
	default:
		err = p.list(ctx, db, &f)
	}
	if err != nil {
		return 0, err
	}
	s, err := summarize(ctx, db)
	fmt.Fprintf(p.stdout, "%s unknown, awaiting a decision\n", grouped(s.Unknown))
	if err == nil && s.attention() {
		return exitAttention, nil
	}
	return 0, err
}
