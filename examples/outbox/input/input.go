// Package input reads files of records. A bad line is told of, and costs nothing but
// itself, unless what follows cannot be told from it.
package input

import (
	"bufio"
	"bytes"
	"encoding/csv"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
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
	Number int // where the record begins, from 1
	Record *refunds.Refund
	Err    error // quotes nothing of the line
}

// Refunds reads a file of refund records in the format that its name says. It is
// strict: a member in another case, or twice, could be money that is not what was
// meant.
func Refunds(r io.Reader, name string) (iter.Seq[Line], error) {
	rows, err := read(r, name)
	return func(yield func(Line) bool) {
		for row := range rows {
			record := new(refunds.Refund)
			err := row.decode(record, json.RejectUnknownMembers(true))
			if err == nil && strings.TrimSpace(record.RefundID) == "" {
				err = errors.New("refund_id is missing")
			}
			if !yield(Line{row.line, record, err}) {
				return
			}
		}
	}, err
}

// Report reads the service's report, whose rows may have more members. It fails if
// there is no reading it to its end: what is behind that is not absent.
func Report(r io.Reader, name string) (report []refundoutbox.ReportRow, err error) {
	rows, err := read(r, name)
	if err != nil {
		return nil, err
	}
	for row := range rows {
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
	return report, nil
}

// A row is a record of a file as a JSON object, or why there is none.
type row struct {
	line int
	json []byte
	err  error
}

// errStopped is in the error of a row behind which nothing can be read.
var errStopped = errors.New("nothing is read from here on")

func stopped(line int, why string) row {
	return row{line: line, err: fmt.Errorf("%s: %w", why, errStopped)}
}

// maxLine bounds a line, so that a file that is none does not come into memory.
const maxLine = 1 << 20

const mark = "\ufeff" // a byte order mark

func read(r io.Reader, name string) (iter.Seq[row], error) {
	in := bufio.NewReaderSize(r, maxLine)
	begin, _ := in.Peek(len(mark))
	switch {
	case bytes.HasPrefix(begin, []byte("\xff\xfe")), bytes.HasPrefix(begin, []byte("\xfe\xff")):
		return nil, target.Usage("outbox: the input is UTF-16, save it as UTF-8")
	case string(begin) == mark:
		in.Discard(len(mark))
	}
	switch filepath.Ext(name) {
	case ".csv", ".tsv":
		return readCSV(in)
	case ".jsonl", ".ndjson":
		return readLines(in), nil
	case ".json":
		return readArray(in)
	}
	return nil, target.Usage("outbox: the input's format does not show in its name: .csv, .tsv, .jsonl or .json")
}

func readLines(r io.Reader) iter.Seq[row] {
	return func(yield func(row) bool) {
		s := bufio.NewScanner(r)
		s.Buffer(nil, maxLine)
		line := 1
		for ; s.Scan(); line++ {
			// Files that were put together have a byte order mark in the middle, too.
			text := bytes.TrimSpace(bytes.TrimPrefix(s.Bytes(), []byte(mark)))
			if len(text) > 0 && !yield(row{line: line, json: bytes.Clone(text)}) {
				return
			}
		}
		if err := s.Err(); err != nil {
			yield(stopped(line, "the line is too long, or the file cannot be read"))
		}
	}
}

// readArray reads an array of objects, however it is broken into lines.
func readArray(r io.Reader) (iter.Seq[row], error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	// What an object may hold is checked where it is decoded.
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if begin, _ := d.ReadToken(); begin.Kind() != '[' {
		return nil, target.Usage("outbox: the input is no JSON array")
	}
	return func(yield func(row) bool) {
		for line, at := 1, 0; d.PeekKind() != ']'; {
			rest := bytes.TrimLeft(text[d.InputOffset():], " \t\r\n,")
			begin := len(text) - len(rest)
			line, at = line+bytes.Count(text[at:begin], []byte("\n")), begin
			value, err := d.ReadValue()
			if err != nil {
				yield(stopped(line, "this is no JSON"))
				return
			}
			if !yield(row{line: line, json: bytes.Clone(value)}) {
				return
			}
		}
	}, nil
}

// readCSV reads a table, whose columns are separated by what its header has most of.
// The header names the members of an object by their path, as in
// card.attributes.bin.
func readCSV(in *bufio.Reader) (iter.Seq[row], error) {
	first, _ := in.Peek(maxLine)
	first, _, _ = bytes.Cut(first, []byte("\n"))
	r := csv.NewReader(in)
	r.Comma = slices.MaxFunc([]rune(",;\t"), func(a, b rune) int {
		return bytes.Count(first, []byte(string(a))) - bytes.Count(first, []byte(string(b)))
	})
	header, err := r.Read()
	if err != nil || !slices.Contains(header, "refund_id") {
		return nil, target.Usage("outbox: the input does not begin with a CSV header that names refund_id")
	}
	for i, name := range header {
		within := func(other string) bool { return strings.HasPrefix(other, name+".") }
		if slices.Contains(header[:i], name) || slices.ContainsFunc(header, within) {
			return nil, target.Usage("outbox: the header names a column twice: %s", name)
		}
	}
	return func(yield func(row) bool) {
		for line := 1; ; {
			cells, err := r.Read()
			wrong, _ := errors.AsType[*csv.ParseError](err)
			var next row
			switch {
			case err == io.EOF:
				return
			case err == nil:
				line, _ = r.FieldPos(0)
				next.line = line
				next.json, next.err = object(header, cells)
			case wrong == nil:
				yield(stopped(line+1, "the file cannot be read"))
				return
			case wrong.StartLine != wrong.Line, strings.Contains(strings.Join(cells, ""), "\n"):
				// A quote that is not closed takes what follows into its cell.
				yield(stopped(wrong.StartLine, "the quotes do not match"))
				return
			case errors.Is(err, csv.ErrFieldCount):
				next = row{line: wrong.Line, err: errors.New("the row has more or fewer fields than the header")}
			default:
				next = row{line: wrong.Line, err: errors.New("the quotes in the line do not match")}
			}
			if !yield(next) {
				return
			}
		}
	}, nil
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
