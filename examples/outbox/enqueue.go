package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/examples/outbox/input"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
	"github.com/carddata/carddata-go/examples/outbox/table"
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

// rowsPerTransaction is how many rows are committed together.
const rowsPerTransaction = 500

// An intake counts what became of the lines.
type intake struct {
	p       *process
	db      *refundoutbox.Database
	account string
	change  bool

	lines                          []int // of the records
	records                        []*refunds.Refund
	taken, updates, there, refused int
}

func (p *process) enqueue(ctx context.Context, args []string) error {
	i := &intake{p: p}
	flags, file := newFlags("enqueue")
	in := flags.String("in", "", "the input `FILE`")
	flags.StringVar(&i.account, "account", "", "the account's `ID`, in place of CARDDATA_ACCOUNT_ID")
	flags.BoolVar(&i.change, "allow-changes", false, "take a record whose refund_id is there already with another amount or currency;\notherwise it is refused")
	if err := p.parse(flags, enqueueUsage, args); err != nil {
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
	opened, err := os.Open(*in)
	if err != nil {
		return target.Usage("outbox: %v", err)
	}
	defer opened.Close()
	rows, err := input.Read(opened, *in, input.Refunds)
	if err != nil {
		return err
	}
	if i.db, err = p.openChecked(ctx, *file, true); err != nil {
		return err
	}
	defer i.db.Close()
	for row, err := range rows {
		if err != nil {
			return err
		}
		if record, err := i.read(row); err != nil {
			i.refuse(row.Line, err.Error())
		} else {
			i.lines, i.records = append(i.lines, row.Line), append(i.records, record)
		}
		if len(i.records) == rowsPerTransaction {
			if err := i.commit(ctx); err != nil {
				return err
			}
		}
	}
	if err := i.commit(ctx); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "enqueued %s, of them %s updates; %s were there before; %s lines refused\n",
		table.Number(i.taken), table.Number(i.updates), table.Number(i.there), table.Number(i.refused))
	if i.refused > 0 {
		return errAttention
	}
	return nil
}

func (i *intake) read(row input.Row) (record *refunds.Refund, err error) {
	if err = row.Err; err == nil {
		record, err = input.ParseRefund(row.JSON)
	}
	if err == nil {
		err = refundoutbox.Acceptable(i.account, record)
	}
	return record, err
}

// commit enqueues the records that were read, in one transaction.
func (i *intake) commit(ctx context.Context) error {
	var placements []refundoutbox.Placement
	err := i.db.Transact(ctx, func(tx refundoutbox.Tx) (err error) {
		placements, err = refundoutbox.Enqueue(ctx, tx, i.account, i.records, i.change)
		return err
	})
	if err != nil {
		return err
	}
	for n, p := range placements {
		switch {
		case p.Row != 0 && p.Earlier != 0:
			i.updates++
			i.taken++
			fmt.Fprintf(i.p.stderr, "line %d: another record has the refund_id, with other content: this one is sent after it\n", i.lines[n])
		case p.Row != 0:
			i.taken++
		case p.Changed:
			i.refuse(i.lines[n], "another record has the refund_id, with another amount or currency (-allow-changes)")
		default:
			i.there++
		}
	}
	i.lines, i.records = nil, nil
	return nil
}

func (i *intake) refuse(line int, reason string) {
	i.refused++
	fmt.Fprintln(i.p.stderr, target.Line(fmt.Sprintf("line %d: refused: %s", line, reason)))
}
