package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/refunds"
)

const enqueueUsage = `usage: outbox enqueue -in FILE [flags]

Takes the refund records of a file: of .jsonl, one JSON object per line; of .csv,
with a header of the members' paths, such as additional_data.order_id, where an
empty cell is left out and additional_data.metadata is a JSON object.

A line that is no record is refused, with its number and the reason, and the
others are taken. A record that was taken before, with the same content, is not
taken again: run the same file as often as you like.

  -in FILE         the input
  -db FILE         the SQLite file, ` + defaultFile + `; it is created
  -account ID      the account, in place of CARDDATA_ACCOUNT_ID
  -allow-changes   takes a record whose refund_id is there already with another
                   amount or currency; otherwise it is refused

Exit code: 0 all lines are taken, or were before; 1 failed; 2 usage,
configuration or a CSV header that cannot be used; 3 done, but for refused lines;
130 interrupted: run it again.
`

// rowsPerTransaction is how many rows are committed together.
const rowsPerTransaction = 500

// An intake counts what became of the lines.
type intake struct {
	p       *process
	db      database
	account string
	change  bool

	waiting               []row
	taken, updates, there int
	refused               int
}

func (p *process) enqueue(ctx context.Context, args []string) (int, error) {
	at := location{create: true}
	flags := flag.NewFlagSet("outbox enqueue", flag.ContinueOnError)
	at.flag(flags)
	in := flags.String("in", "", "")
	account := flags.String("account", "", "")
	change := flags.Bool("allow-changes", false, "")
	if code, ok := p.parse(flags, enqueueUsage, args); !ok {
		return code, nil
	}
	if *account == "" {
		*account, _ = p.env("CARDDATA_ACCOUNT_ID")
	}
	switch {
	case flags.NArg() > 0:
		return 0, target.Usage("outbox: enqueue takes no arguments besides flags (-h helps)")
	case *in == "":
		return 0, target.Usage("outbox: -in is missing (-h helps)")
	case *account == "":
		return 0, target.Usage("outbox: the account is missing: give -account or set CARDDATA_ACCOUNT_ID")
	}
	if err := acceptable(*account, &refunds.Refund{RefundID: "any"}); err != nil {
		return 0, target.Usage("outbox: the account cannot be used: %v", err)
	}
	file, err := os.Open(*in)
	if err != nil {
		return 0, target.Usage("outbox: %v", err)
	}
	defer file.Close()
	rows, err := readRows(file, *in)
	if err != nil {
		return 0, err
	}
	db, err := p.open(ctx, at)
	if err != nil {
		return 0, err
	}
	defer db.close()

	i := &intake{p: p, db: db, account: *account, change: *change}
	for r, err := range rows {
		if err == nil {
			err = i.take(ctx, r)
		}
		if err != nil {
			return 0, err
		}
	}
	if err := i.flush(ctx); err != nil {
		return 0, err
	}
	fmt.Fprintf(p.stdout, "enqueued %s, of them %s updates; %s were there before; %s lines refused\n",
		grouped(i.taken), grouped(i.updates), grouped(i.there), grouped(i.refused))
	if i.refused > 0 {
		return exitAttention, nil
	}
	return 0, nil
}

func (i *intake) take(ctx context.Context, r row) error {
	if r.bad == nil {
		r.bad = acceptable(i.account, r.record)
	}
	i.waiting = append(i.waiting, r)
	if len(i.waiting) < rowsPerTransaction {
		return ctx.Err()
	}
	return i.flush(ctx)
}

func (i *intake) refuse(line int, reason string) {
	i.refused++
	fmt.Fprintln(i.p.stderr, target.Line(fmt.Sprintf("line %d: refused: %s", line, reason)))
}

// flush enqueues what waits, in one transaction, and reports in the lines' order.
func (i *intake) flush(ctx context.Context) error {
	var records []*refunds.Refund
	for _, r := range i.waiting {
		if r.bad == nil {
			records = append(records, r.record)
		}
	}
	var placements []placement
	err := i.db.transact(ctx, func(tx transaction) (err error) {
		placements, err = store(ctx, tx, i.account, records, i.change)
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range i.waiting {
		line, p := r.line, placement{}
		if r.bad == nil {
			p, placements = placements[0], placements[1:]
		}
		switch {
		case r.bad != nil:
			i.refuse(line, r.bad.Error())
		case p.row != 0 && p.earlier != 0:
			i.updates++
			i.taken++
			fmt.Fprintf(i.p.stderr, "line %d: another record has the refund_id, with other content: this one is sent after it\n", line)
		case p.row != 0:
			i.taken++
		case p.changed:
			i.refuse(line, "another record has the refund_id, with another amount or currency (-allow-changes)")
		default:
			i.there++
		}
	}
	i.waiting = i.waiting[:0]
	return nil
}
