// Package input reads files of records. A bad line is told of, and costs nothing but
// itself, unless what follows cannot be told from it.
package input

import (
	"bytes"
	"encoding/csv"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
	"github.com/carddata/carddata-go/refunds"
)

// A Line is a refund record of a file, or why there is none.
type Line struct {
	Number int // where the record begins, from 1; of an array, the record's number
	Record *refunds.Refund
	Err    error // quotes nothing of the line
}

// Refunds reads a file of refund records of an account in the format that its name
// says. It is strict: a member in another case, or twice, could be money that is not
// what was meant.
func Refunds(text []byte, name, account string) (lines []Line, err error) {
	rows, err := read(text, name)
	for _, row := range rows {
		record := new(refunds.Refund)
		err := row.decode(record, json.RejectUnknownMembers(true))
		if err == nil {
			err = refundoutbox.Acceptable(account, record)
		}
		lines = append(lines, Line{row.line, record, err})
	}
	return lines, err
}

// Report reads the service's report, whose rows may have more members. It fails if
// there is no reading it to its end: what is behind that is not absent.
func Report(text []byte, name string) (report []refundoutbox.ReportRow, err error) {
	rows, err := read(text, name)
	for _, row := range rows {
		out := refundoutbox.ReportRow{Line: row.line}
		switch out.Err = row.decode(&out); {
		case errors.Is(out.Err, errStopped):
			return nil, target.Usage("outbox: the report cannot be used: line %d: %v", row.line, out.Err)
		case out.Err == nil && out.RefundID == "":
			out.Err = errors.New("refund_id is missing")
		case out.Err == nil && out.Account == "":
			out.Err = errors.New("account is missing")
		}
		report = append(report, out)
	}
	return report, err
}

// A row is a record of a file as a JSON object, or why there is none.
type row struct {
	line int
	json []byte
	err  error
}

func read(text []byte, name string) ([]row, error) {
	const mark = "\ufeff" // a byte order mark; files that were put together have more of them
	switch text = bytes.TrimPrefix(text, []byte(mark)); filepath.Ext(name) {
	case ".csv", ".tsv":
		return readCSV(text)
	case ".jsonl", ".ndjson":
		var rows []row
		for i, line := range bytes.Split(text, []byte("\n")) {
			if line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte(mark))); len(line) > 0 {
				rows = append(rows, row{line: i + 1, json: line})
			}
		}
		return rows, nil
	case ".json":
		var values []jsontext.Value
		// What an object may hold is checked where it is decoded.
		if err := json.Unmarshal(text, &values, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
			return nil, target.Usage("outbox: the input is no JSON array, or is cut off")
		}
		var rows []row
		for i, value := range values {
			rows = append(rows, row{line: i + 1, json: value})
		}
		return rows, nil
	}
	return nil, target.Usage("outbox: the input's format does not show in its name: .csv, .tsv, .jsonl or .json")
}

// errStopped is the error of a row behind which nothing can be read.
var errStopped = errors.New("the quotes do not match: nothing is read from here on")

// readCSV reads a table, whose columns are separated by what its header has most of.
// The header names the members of an object by their path, as in
// card.attributes.bin.
func readCSV(text []byte) (rows []row, err error) {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma = slices.MaxFunc([]rune(",;\t"), func(a, b rune) int {
		return bytes.Count(first, []byte(string(a))) - bytes.Count(first, []byte(string(b)))
	})
	header, err := r.Read()
	if err != nil || !slices.Contains(header, "refund_id") {
		return nil, target.Usage("outbox: the input does not begin with a CSV header in UTF-8 that names refund_id")
	}
	for i, name := range header {
		within := func(other string) bool { return strings.HasPrefix(other, name+".") }
		if slices.Contains(header[:i], name) || slices.ContainsFunc(header, within) {
			return nil, target.Usage("outbox: the header names a column twice: %s", name)
		}
	}
	for {
		cells, err := r.Read()
		wrong, _ := errors.AsType[*csv.ParseError](err)
		switch {
		case err == io.EOF:
			return rows, nil
		case wrong == nil:
			line, _ := r.FieldPos(0)
			object, err := object(header, cells)
			rows = append(rows, row{line, object, err})
		case wrong.StartLine != wrong.Line, strings.Contains(strings.Join(cells, ""), "\n"):
			// A quote that is not closed takes what follows into its cell.
			return append(rows, row{line: wrong.StartLine, err: errStopped}), nil
		case errors.Is(err, csv.ErrFieldCount):
			rows = append(rows, row{line: wrong.Line, err: errors.New("the row has more or fewer fields than the header")})
		default:
			rows = append(rows, row{line: wrong.Line, err: errors.New("the quotes in the line do not match")})
		}
	}
}

// raw are the members that are no strings: their cells hold JSON.
var raw = []string{"amount", "additional_data.metadata"}

// object makes an object of the cells that are not empty.
func object(header, cells []string) ([]byte, error) {
	root := make(map[string]any)
	for i, path := range header {
		cell := cells[i]
		if cell == "" {
			continue
		}
		names, at := strings.Split(path, "."), root
		for _, name := range names[:len(names)-1] {
			below, ok := at[name].(map[string]any)
			if !ok {
				below = make(map[string]any)
				at[name] = below
			}
			at = below
		}
		name := names[len(names)-1]
		switch {
		case !slices.Contains(raw, path):
			at[name] = cell
		case strings.TrimSpace(cell) == cell && jsontext.Value(cell).IsValid():
			at[name] = jsontext.Value(cell)
		default:
			return nil, fmt.Errorf("%s is no JSON", path)
		}
	}
	text, err := json.Marshal(root)
	if err != nil {
		return nil, errors.New("the line is not UTF-8")
	}
	return text, nil
}

// exactNumbers keeps the numbers of metadata as they are written: a float64 would
// round.
var exactNumbers = json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, value *any) error {
	if d.PeekKind() != '0' {
		return json.SkipFunc
	}
	text, err := d.ReadValue()
	*value = stdjson.Number(text)
	return err
}))

// decode quotes nothing but names in its errors.
func (r row) decode(into any, options ...json.Options) error {
	if r.err != nil {
		return r.err
	}
	err := json.Unmarshal(r.json, into, append(options, exactNumbers)...)
	wrong, _ := errors.AsType[*json.SemanticError](err)
	syntax, _ := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case err == nil && jsontext.Value(r.json).Kind() == '{':
		return nil
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Errorf("%s appears twice", path(syntax.JSONPointer))
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("a refund record has no such member: %s", path(wrong.JSONPointer))
	case wrong == nil || wrong.GoType == nil || wrong.JSONPointer == "":
		return errors.New("the line is not one JSON object in UTF-8")
	}
	name := path(wrong.JSONPointer)
	switch wrong.GoType.Kind() {
	case reflect.String:
		return fmt.Errorf("%s must be a string", name)
	case reflect.Int64, reflect.Pointer:
		return fmt.Errorf("%s must be an integer of at most 64 bits, without fraction, exponent and quotes", name)
	}
	return fmt.Errorf("%s must be an object", name)
}

func path(p jsontext.Pointer) string { return strings.Join(slices.Collect(p.Tokens()), ".") }
