package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"iter"
	"slices"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/refunds"
)

// maxSpan is how many lines a row with quoted line breaks can have.
const maxSpan = 100

// readCSV reads CSV whose header names the members of a record by their path, as
// in payment_method_details.card.attributes.bin. Empty cells are left out.
//
// A header that names something else is refused: of each record, the service
// would get less than the file says.
func readCSV(in *lines) (iter.Seq2[row, error], error) {
	first, err := in.nextFilled()
	if err != nil && err != io.EOF {
		return nil, err
	}
	header, ok := split(first.text)
	if !ok || first.bad != nil {
		return nil, target.Usage("outbox: the input does not begin with a CSV header")
	}
	for i, name := range header {
		switch _, known := members[name]; {
		case !known:
			return nil, target.Usage("outbox: line %d: a refund record has no such member: %s", first.number, printable(name))
		case slices.Contains(header[:i], name):
			return nil, target.Usage("outbox: line %d names %s twice", first.number, name)
		}
	}
	if !slices.Contains(header, "refund_id") {
		return nil, target.Usage("outbox: line %d names no refund_id", first.number)
	}
	return func(yield func(row, error) bool) {
		for {
			r, err := csvRow(in, header)
			if err == io.EOF || !yield(r, err) || err != nil {
				return
			}
		}
	}, nil
}

// csvRow reads a row, which has more than one line if a line break is quoted.
//
// A quote that is never closed would make all that follows one row. So lines are
// added only until there is a row of the header's length, and if there is none,
// the first line alone is bad.
func csvRow(in *lines, header []string) (row, error) {
	first, err := in.nextFilled()
	if err != nil {
		return row{}, err
	}
	r := row{line: first.number, bad: first.bad}
	text, more := first.text, []line(nil)
	for r.bad == nil {
		cells, ok := split(text)
		switch {
		case ok && len(cells) == len(header):
			r.record, r.bad = fill(header, cells)
			return r, nil
		case ok && len(more) == 0:
			r.bad = errors.New("the row has more or fewer fields than the header")
			continue
		}
		next, err := in.next()
		if err == nil {
			more = append(more, next)
		}
		switch {
		case err != nil && err != io.EOF:
			return r, err
		case ok, err == io.EOF, next.bad != nil, len(more) == maxSpan, len(text)+len(next.text) > maxLine:
			r.bad = errors.New("the quotes in the line do not match")
		}
		text = slices.Concat(text, []byte("\n"), next.text)
	}
	in.unread(more)
	return r, nil
}

// split returns the cells if text is a row.
func split(text []byte) ([]string, bool) {
	cells, err := csv.NewReader(bytes.NewReader(text)).Read()
	return cells, err == nil
}

func fill(header, cells []string) (*refunds.Refund, error) {
	record := new(refunds.Refund)
	for i, name := range header {
		if cells[i] == "" {
			continue
		}
		if err := set(record, name, cells[i]); err != nil {
			return nil, err
		}
	}
	return record, complete(record)
}
