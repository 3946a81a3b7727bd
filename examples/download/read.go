package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/carddata/carddata-go/examples/internal/target"
)

// Format and fields of a result are not documented. These are the ways to read
// the formats that are likely, row by row and in constant memory.
var formats = map[string]func(content *bounded, each func(row) error) error{
	"csv":    readCSV,
	"ndjson": readNDJSON,
	"json":   readJSON,
}

// A row is one record of a result, by the names of its columns or members.
type row map[string]any

// readCSV reads CSV with a header.
func readCSV(content *bounded, each func(row) error) error {
	r := csv.NewReader(content)
	header, err := r.Read()
	if err == nil {
		header[0] = strings.TrimPrefix(header[0], "\ufeff") // as Windows programs write it
	}
	for err == nil {
		content.next()
		var values []string
		if values, err = r.Read(); err != nil {
			break
		}
		row := make(row, len(header))
		for i, name := range header {
			row[name] = values[i]
		}
		err = each(row)
	}
	return unlessEnd(err)
}

// readNDJSON reads one JSON object after another.
func readNDJSON(content *bounded, each func(row) error) error {
	d := newDecoder(content)
	for {
		var row row
		if err := d.Decode(&row); err != nil {
			return unlessEnd(err)
		}
		if err := each(row); err != nil {
			return err
		}
		content.next()
	}
}

// readJSON reads an array of objects.
func readJSON(content *bounded, each func(row) error) error {
	d := newDecoder(content)
	if begin, err := d.Token(); err != nil || begin != json.Delim('[') {
		return errors.Join(errors.New("the result is no JSON array"), unlessEnd(err))
	}
	for d.More() {
		var row row
		if err := d.Decode(&row); err != nil {
			return err
		}
		if err := each(row); err != nil {
			return err
		}
		content.next()
	}
	if _, err := d.Token(); err == io.EOF {
		return errors.New("the JSON array does not end")
	} else if err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.Join(errors.New("the JSON array has something behind it"), err)
	}
	return nil
}

// Numbers stay as they are written: as floats, card numbers would lose digits.
func newDecoder(content io.Reader) *json.Decoder {
	d := json.NewDecoder(content)
	d.UseNumber()
	return d
}

func unlessEnd(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// printRow prints a row in one line, with card numbers masked.
func printRow(to io.Writer, row row) error {
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(row)) {
		fields = append(fields, target.Line(name+"="+text(row[name])))
	}
	_, err := fmt.Fprintln(to, strings.Join(fields, " "))
	return err
}

func text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	encoded, _ := json.Marshal(value) // which came from JSON
	return string(encoded)
}

// maxRow is how much memory a row may take before it counts as broken: a quote
// that nobody closes would otherwise make one row of the rest of the content.
const maxRow = 1 << 20

var errRowTooLong = fmt.Errorf("a row is longer than %d bytes: is the result of another format?", maxRow)

// A bounded reader gives out no more than maxRow bytes for one row.
type bounded struct {
	content io.Reader
	left    int
}

func newBounded(content io.Reader) *bounded { return &bounded{content, maxRow} }

func (b *bounded) next() { b.left = maxRow }

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errRowTooLong
	}
	n, err := b.content.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
