package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/carddata/carddata-go/examples/tools/internal/cli"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/outbox"
)

const enqueueUsage = `Takes the refund records of a file, a JSON object on each line. Blank lines are skipped. A
bad line is refused with its number and the reason, and the others are taken. A record is
taken once: run the same file as often as you like. But a record with the refund_id of an
earlier one and any other difference is an update, and is sent, too. Exit code 3: lines
were refused.`

func (c *command) enqueue(ctx context.Context, args []string) error {
	in := c.flags.String("in", "", "the input `FILE`, which may also follow the flags")
	account := c.flags.String("account", c.env("CARDDATA_ACCOUNT_ID"), "the account's `ID`, in place of CARDDATA_ACCOUNT_ID")
	change := c.flags.Bool("allow-changes", false, "take a record with the refund_id of an earlier one and another amount or\ncurrency; otherwise it is refused")
	c.canMigrate()
	if err := c.parse(enqueueUsage, args); err != nil {
		return err
	}
	switch file := c.flags.Arg(0); {
	case c.flags.NArg() > 1, file != "" && *in != "":
		return cli.Usage("outbox: more than one input file is named")
	case file != "":
		*in = file
	}
	switch {
	case *in == "":
		return cli.Usage("outbox: the input file is missing: outbox enqueue FILE (-h helps)")
	case *account == "":
		return cli.Usage("outbox: the account is missing: set -account or CARDDATA_ACCOUNT_ID")
	}
	text, err := os.ReadFile(*in)
	if err != nil {
		return cli.Usage("outbox: %w", err)
	}
	s, err := c.openToWork(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	var added, there, refused int
	refuse := func(line int, err error) {
		refused++
		fmt.Fprintln(c.stderr, cli.Line(fmt.Sprintf("line %d: refused: %v", line, err)))
	}
	var lines []int // of the items
	items := func(yield func(outbox.Item) bool) {
		number := 0
		for line := range bytes.Lines(text) {
			number++
			record := new(refunds.Refund)
			if line = bytes.TrimSpace(line); len(line) == 0 {
				continue
			} else if err := decode(line, record); err != nil {
				refuse(number, err)
				continue
			}
			lines = append(lines, number)
			if !yield(outbox.Item{AccountID: *account, Refund: record, AllowChange: *change}) {
				return
			}
		}
	}
	for e, err := range s.EnqueueAll(ctx, items) {
		switch {
		case err != nil:
			return err
		case e.Err != nil:
			refuse(lines[e.Index], e.Err)
		case e.New:
			added++
		default:
			there++
		}
	}
	fmt.Fprintf(c.stdout, "enqueued %d; %d were there before; %d lines refused\n", added, there, refused)
	if refused > 0 {
		return errLook
	}
	return nil
}

var errLine = errors.New("not one JSON object of a refund record")

func decode(line []byte, record *refunds.Refund) error {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	decoder.UseNumber() // a float64 would round the numbers of metadata
	if err := decoder.Decode(record); err != nil {
		return fmt.Errorf("%w: %w", errLine, err)
	}
	if decoder.More() {
		return errLine
	}
	return nil
}

// readReport reads the service's report.
func readReport(name string) (rows []outbox.ReportRow, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, cli.Usage("outbox: %w", err)
	}
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff")))) // a byte order mark
	header, _ := r.Read()
	var at [4]int
	for i, column := range []string{"account", "refund_id", "amount", "currency"} {
		if at[i] = slices.Index(header, column); at[i] < 0 {
			return nil, cli.Usage("outbox: the report has no column %s", column)
		}
	}
	for {
		cells, err := r.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil { // what is behind it would count as not found
			return nil, cli.Usage("outbox: the report cannot be used: %w", err)
		}
		line, _ := r.FieldPos(0)
		row := outbox.ReportRow{Line: line, AccountID: cells[at[0]], RefundID: cells[at[1]], Currency: cells[at[3]]}
		if text := cells[at[2]]; text != "" {
			amount, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				row.Err = errors.New("the amount is no integer of 64 bits")
			}
			row.Amount = &amount
		}
		if row.AccountID == "" || row.RefundID == "" {
			row.Err = errors.New("account or refund_id is missing")
		}
		rows = append(rows, row)
	}
}
