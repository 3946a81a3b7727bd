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

const enqueueUsage = `Takes the refund records of a file: .jsonl, .json, or .csv and .tsv with a header of the
members' paths. A bad line is refused, with its number and the reason, and the others
are taken. A record is taken once: run the same file as often as you like.

Exit code 3: lines were refused.`

func (p *process) enqueue(ctx context.Context, args []string) error {
	in := p.flags.String("in", "", "the input `FILE`")
	environment, _ := p.env("CARDDATA_ACCOUNT_ID")
	account := p.flags.String("account", "", "the account's `ID`, in place of CARDDATA_ACCOUNT_ID")
	change := p.flags.Bool("allow-changes", false, "take a record whose refund_id is there already with another amount or currency;\notherwise it is refused")
	if err := p.parse(enqueueUsage, args); err != nil {
		return err
	}
	*account = cmp.Or(*account, environment)
	switch {
	case *in == "":
		return target.Usage("outbox: -in is missing (-h helps)")
	case *account == "":
		return target.Usage("outbox: the account is missing: give -account or set CARDDATA_ACCOUNT_ID")
	}
	if err := refundoutbox.Acceptable(*account, &refunds.Refund{RefundID: "any"}); err != nil {
		return target.Usage("outbox: the account cannot be used: %v", err)
	}
	text, err := os.ReadFile(*in)
	if err != nil {
		return target.Usage("outbox: %v", err)
	}
	lines, err := input.Refunds(text, *in, *account)
	if err != nil {
		return err
	}
	db, err := p.open(ctx, true, false)
	if err != nil {
		return err
	}
	defer db.Close()
	var taken, updates, there, refused int
	refuse := func(line input.Line, reason string) {
		refused++
		fmt.Fprintln(p.stderr, target.Line(fmt.Sprintf("line %d: refused: %s", line.Number, reason)))
	}
	var good []input.Line
	for _, line := range lines {
		if line.Err != nil {
			refuse(line, line.Err.Error())
			continue
		}
		good = append(good, line)
	}
	for batch := range slices.Chunk(good, 500) { // a transaction each
		var records []*refunds.Refund
		for _, line := range batch {
			records = append(records, line.Record)
		}
		var placements []refundoutbox.Placement
		err := db.Transact(ctx, func(tx refundoutbox.Tx) (err error) {
			placements, err = refundoutbox.Enqueue(ctx, tx, *account, records, *change)
			return err
		})
		if err != nil {
			return err
		}
		for n, placed := range placements {
			switch {
			case placed.Row == 0 && placed.Changed:
				refuse(batch[n], "another record has the refund_id, with another amount or currency (-allow-changes)")
			case placed.Row == 0:
				there++
			case placed.Earlier != 0:
				updates++
				fmt.Fprintf(p.stderr, "line %d: another record has the refund_id, with other content: this one is sent after it\n", batch[n].Number)
				fallthrough
			default:
				taken++
			}
		}
	}
	fmt.Fprintf(p.stdout, "enqueued %d, of them %d updates; %d were there before; %d lines refused\n", taken, updates, there, refused)
	if refused > 0 {
		return exitAttention
	}
	return nil
}
