package main

import (
	"bytes"
	"iter"
	"slices"
	"strings"

	"github.com/carddata/carddata-go/examples/tools/internal/cli"
)

// A csvFormat is CSV with a header.
//
// It does not use encoding/csv, for three reasons. The bytes of a row go to the output
// unchanged. A row with broken quotes does not affect the next one. A quote that is never
// closed does not load the rest of the file into memory. A fuzz test checks that both read
// valid input in the same way.
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
	var names []string
	for field := range csvFields(text, f.delimiter) {
		names = append(names, strings.TrimSpace(unquote(field)))
	}
	f.fields, f.index = len(names), slices.Index(names, f.column)
	switch {
	case f.index < 0:
		return nil, cli.Usage("enrich: line 1 of the input names no column %q (-column, -delimiter)", f.column)
	case slices.Contains(names[f.index+1:], f.column):
		return nil, cli.Usage("enrich: line 1 of the input names the column %q twice", f.column)
	}
	var head []byte
	if in.bom {
		head = []byte("\ufeff")
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

// end finds the first line break outside of quotes. A field is quoted if its first
// character is a quote. If the quotes do not match, the row is one line.
func (f *csvFormat) end(text []byte, all bool) (int, *problem) {
	const (
		start = iota
		plain
		quoted
		closed
	)
	state, broken := start, false
	for i, c := range text {
		switch {
		case state == quoted:
			if c == '"' {
				state = closed
			}
		case c == '\n':
			if broken {
				return brokenQuotes(text)
			}
			return i + 1, nil
		case c == f.delimiter:
			state = start
		case c == '"' && state != plain: // opens the field, or is the second of two
			state = quoted
		case c == '"':
			broken = true
		case state == closed:
			broken = broken || c != '\r' || i+1 < len(text) && text[i+1] != '\n'
		default:
			state = plain
		}
	}
	switch {
	case !all:
		return 0, nil
	case broken || state == quoted:
		return brokenQuotes(text)
	}
	return len(text), nil
}

func brokenQuotes(text []byte) (int, *problem) {
	n, _ := lineEnd(text, true)
	return n, &problem{"broken_quotes", "the quotes in this line do not match"}
}

func (f *csvFormat) card(text []byte) (string, *problem) {
	card, fields := "", 0
	for field := range csvFields(text, f.delimiter) {
		if fields == f.index {
			card = unquote(field)
		}
		fields++
	}
	if fields != f.fields {
		return "", &problem{"ragged", "the row has more or fewer fields than the header"}
	}
	return card, nil
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

// csvFields yields the fields of a row with matching quotes, with their quotes.
func csvFields(text []byte, delimiter byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		begin, quoted := 0, false
		for i, c := range text {
			switch {
			case c == '"':
				quoted = !quoted // a doubled quote changes it twice
			case c == delimiter && !quoted:
				if !yield(text[begin:i]) {
					return
				}
				begin = i + 1
			}
		}
		yield(text[begin:])
	}
}

func unquote(field []byte) string {
	if len(field) < 2 || field[0] != '"' {
		return string(field)
	}
	return string(bytes.ReplaceAll(field[1:len(field)-1], []byte(`""`), []byte(`"`)))
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
