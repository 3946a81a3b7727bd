package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/examples/outbox/input"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
	"github.com/carddata/carddata-go/refunds"
)

const enqueueUsage = `-in FILE [flags]

Takes the refund records of a file: of .jsonl, one JSON object per line; of .json,
an array of them; of .csv or .tsv, with a header of the members' paths, such as
additional_data.order_id, where an empty cell is left out and
additional_data.metadata is a JSON object. Columns may be separated by a comma, a
semicolon or a tab.

A bad line is refused, with its number and the reason, and the others are taken.
Only what follows a quote that is not closed cannot be read. A record that was taken
before, with the same content, is not taken again: run the same file as often as you
like.

Exit code: 0 all lines are taken, or were before; 1 failed; 2 usage, configuration or
a CSV header that cannot be used; 3 done, but for refused lines; 130 interrupted: run
it again.
`

// linesPerTransaction is how many lines are committed together.
const linesPerTransaction = 500

// An intake takes the lines of a file, and counts what became of them.
type intake struct {
	*process
	db      *refundoutbox.Database
	account string
	change  bool

	waiting                        []input.Line // for the next transaction
	taken, updates, there, refused int
}

func (p *process) enqueue(ctx context.Context, args []string) error {
	i := &intake{process: p}
	in := p.flags.String("in", "", "the input `FILE`")
	p.flags.StringVar(&i.account, "account", "", "the account's `ID`, in place of CARDDATA_ACCOUNT_ID")
	p.flags.BoolVar(&i.change, "allow-changes", false, "take a record whose refund_id is there already with another amount or currency;\notherwise it is refused")
	if err := p.parse(enqueueUsage, args); err != nil {
		return err
	}
	account, _ := p.env("CARDDATA_ACCOUNT_ID")
	i.account = cmp.Or(i.account, account)
	switch {
	case *in == "":
		return target.Usage("outbox: -in is missing (-h helps)")
	case i.account == "":
		return target.Usage("outbox: the account is missing: give -account or set CARDDATA_ACCOUNT_ID")
	}
	if err := refundoutbox.Acceptable(i.account, &refunds.Refund{RefundID: "any"}); err != nil {
		return target.Usage("outbox: the account cannot be used: %v", err)
	}
	file, err := os.Open(*in)
	if err != nil {
		return target.Usage("outbox: %v", err)
	}
	defer file.Close()
	lines, err := input.Refunds(file, *in)
	if err != nil {
		return err
	}
	if i.db, err = p.open(ctx, true); err != nil {
		return err
	}
	defer i.db.Close()
	for line := range lines {
		if line.Err == nil {
			line.Err = refundoutbox.Acceptable(i.account, line.Record)
		}
		if line.Err != nil {
			i.refuse(line, line.Err.Error())
			continue
		}
		if i.waiting = append(i.waiting, line); len(i.waiting) == linesPerTransaction {
			if err := i.commit(ctx); err != nil {
				return err
			}
		}
	}
	if err := i.commit(ctx); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "enqueued %d, of them %d updates; %d were there before; %d lines refused\n", i.taken, i.updates, i.there, i.refused)
	if i.refused > 0 {
		return errAttention
	}
	return nil
}

// commit enqueues the lines that wait, in one transaction.
func (i *intake) commit(ctx context.Context) error {
	var records []*refunds.Refund
	for _, line := range i.waiting {
		records = append(records, line.Record)
	}
	var placements []refundoutbox.Placement
	err := i.db.Transact(ctx, func(tx refundoutbox.Tx) (err error) {
		placements, err = refundoutbox.Enqueue(ctx, tx, i.account, records, i.change)
		return err
	})
	if err != nil {
		return err
	}
	for n, p := range placements {
		switch line := i.waiting[n]; {
		case p.Row != 0 && p.Earlier != 0:
			i.updates++
			i.taken++
			fmt.Fprintf(i.stderr, "line %d: another record has the refund_id, with other content: this one is sent after it\n", line.Number)
		case p.Row != 0:
			i.taken++
		case p.Changed:
			i.refuse(line, "another record has the refund_id, with another amount or currency (-allow-changes)")
		default:
			i.there++
		}
	}
	i.waiting = nil
	return nil
}

func (i *intake) refuse(line input.Line, reason string) {
	i.refused++
	fmt.Fprintln(i.stderr, target.Line(fmt.Sprintf("line %d: refused: %s", line.Number, reason)))
}
