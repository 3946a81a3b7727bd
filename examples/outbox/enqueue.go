package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

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

Exit code 3: done, but for refused lines.
`

// An intake takes the lines of a file, and counts what became of them.
type intake struct {
	*process
	db      *refundoutbox.Database
	account string
	change  bool

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
	text, err := os.ReadFile(*in)
	if err != nil {
		return target.Usage("outbox: %v", err)
	}
	lines, err := input.Refunds(text, *in)
	if err != nil {
		return err
	}
	if i.db, err = p.open(ctx, true, false); err != nil {
		return err
	}
	defer i.db.Close()
	var good []input.Line
	for _, line := range lines {
		if line.Err == nil {
			line.Err = refundoutbox.Acceptable(i.account, line.Record)
		}
		if line.Err != nil {
			i.refuse(line, line.Err.Error())
			continue
		}
		good = append(good, line)
	}
	for batch := range slices.Chunk(good, 500) {
		if err := i.take(ctx, batch); err != nil {
			return err
		}
	}
	fmt.Fprintf(p.stdout, "enqueued %d, of them %d updates; %d were there before; %d lines refused\n", i.taken, i.updates, i.there, i.refused)
	if i.refused > 0 {
		return exitAttention
	}
	return nil
}

// take enqueues lines in one transaction.
func (i *intake) take(ctx context.Context, lines []input.Line) error {
	var records []*refunds.Refund
	for _, line := range lines {
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
		switch line := lines[n]; {
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
	return nil
}

func (i *intake) refuse(line input.Line, reason string) {
	i.refused++
	fmt.Fprintln(i.stderr, target.Line(fmt.Sprintf("line %d: refused: %s", line.Number, reason)))
}
