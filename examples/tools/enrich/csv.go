package main

import (
	"bytes"
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/carddata/carddata-go/examples/tools/internal/cli"
)

// A csvFormat is CSV with a header. The bytes of a row go to the output unchanged, a row with
// broken quotes does not affect the next one, and a quote that is never closed does not load
// the rest of the file into memory. So encoding/csv reads one row at a time.
type csvFormat struct {
	column    string
	columns   []column
	delimiter byte

	index  int // of the card's field
	fields int // in the header
}

func (f *csvFormat) begin(in *input) ([]byte, error) {
	raw, bad, err := in.take(f.end)
	if err != nil || bad != nil {
		return nil, cli.Usage("enrich: the input does not begin with a CSV header")
	}
	text, lineBreak := splitLineBreak(raw)
	var head []byte
	if in.bom {
		head = []byte("\ufeff")
	}
	// Some spreadsheets say in a line before the header what separates the columns.
	if sep, found := bytes.CutPrefix(text, []byte("sep=")); found && len(sep) == 1 {
		head, f.delimiter = append(head, raw...), sep[0]
		if raw, bad, err = in.take(f.end); err != nil || bad != nil {
			return nil, cli.Usage("enrich: the input does not begin with a CSV header")
		}
		text, lineBreak = splitLineBreak(raw)
	}
	names, err := f.read(text)
	if err != nil {
		return nil, cli.Usage("enrich: the input does not begin with a CSV header")
	}
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
	}
	f.fields, f.index = len(names), slices.Index(names, f.column)
	switch {
	case f.index < 0:
		return nil, cli.Usage("enrich: the header of the input names no column %q, but %s (-column, -delimiter)", f.column, found(names))
	case slices.Contains(names[f.index+1:], f.column):
		return nil, cli.Usage("enrich: the header of the input names the column %q twice", f.column)
	}
	head = append(head, text...)
	for _, c := range f.columns {
		if slices.Contains(names, c.name) {
			return nil, cli.Usage("enrich: the input has a column %q already: rename the new one (-columns NAME=%s)", c.name, c.path)
		}
		head = append(append(head, f.delimiter), f.quote(c.name)...)
	}
	return append(head, lineBreak...), nil
}

// found lists the names of the first columns. A file without a header has cards in their place, so
// what is no word is not shown.
func found(names []string) string {
	const most = 12
	var shown []string
	for _, name := range names[:min(len(names), most)] {
		if len(name) > 40 || strings.ContainsAny(name, "0123456789") {
			name = "…"
		}
		shown = append(shown, strconv.Quote(name))
	}
	if len(names) > most {
		shown = append(shown, "…")
	}
	return strings.Join(shown, ", ")
}

// end finds the first line break that is not between quotes. If the quotes do not match, the
// row is one line.
func (f *csvFormat) end(text []byte, all bool) (int, *problem) {
	if n, _ := lineEnd(text, all); !bytes.Contains(text[:n], []byte(`"`)) {
		return n, nil
	}
	quoted := false
	n := bytes.IndexFunc(text, func(c rune) bool {
		if c == '"' {
			quoted = !quoted // a doubled quote changes it twice
		}
		return c == '\n' && !quoted
	}) + 1
	switch {
	case n == 0 && !all:
		return 0, nil
	case n == 0:
		n = len(text)
	}
	if _, err := f.read(text[:n]); err != nil && err != io.EOF {
		return brokenQuotes(text)
	}
	return n, nil
}

// read returns the fields of a row.
func (f *csvFormat) read(text []byte) ([]string, error) {
	if !bytes.Contains(text, []byte(`"`)) { // four times as fast
		return strings.Split(string(text), string(f.delimiter)), nil
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma = rune(f.delimiter)
	return r.Read()
}

func brokenQuotes(text []byte) (int, *problem) {
	n, _ := lineEnd(text, true)
	return n, &problem{"broken_quotes", "the quotes in this line do not match"}
}

func (f *csvFormat) card(text []byte) (string, *problem) {
	fields, err := f.read(text)
	if err != nil || len(fields) != f.fields {
		return "", &problem{"ragged", "the row has more or fewer fields than the header"}
	}
	return fields[f.index], nil
}

func (f *csvFormat) enrich(out, text []byte, values []any) ([]byte, error) {
	out = append(out, text...)
	for _, value := range values {
		cell, err := cellText(value)
		if err != nil {
			return nil, err
		}
		out = append(append(out, f.delimiter), f.quote(cell)...)
	}
	return out, nil
}

// quote quotes a field of a comma-separated file.
func quote(field string) string { return comma.quote(field) }

var comma = &csvFormat{delimiter: ','}

func (f *csvFormat) quote(field string) string {
	if !strings.ContainsAny(field, "\"\r\n") && strings.IndexByte(field, f.delimiter) < 0 && field == strings.TrimSpace(field) {
		return field
	}
	return `"` + strings.ReplaceAll(field, `"`, `""`) + `"`
}
