// Package input reads files of records. A bad line is told of, and costs nothing but
// itself, unless what follows cannot be told from it.
package input

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/carddata/carddata-go/examples/internal/target"
)

// A Row is a record of a file as a JSON object, or why there is none.
type Row struct {
	Line int // where it begins, from 1
	JSON []byte
	Err  error // quotes nothing of the line
}

// A Format says what the columns of a CSV file are. Its header names the members of
// an object by their path, as in card.attributes.bin; empty cells are left out.
type Format struct {
	// Raw are the members that are no strings, whose cells are JSON.
	Raw []string
	// Check fails for an object with a member that there is not; nil: others are
	// left out without a word.
	Check func(object []byte) error
	// Key is a member that the header has to have. Of the separators comma, semicolon
	// and tab, that one is taken with which it does.
	Key string
}

// maxLine bounds a line, so that a file that is none does not come into memory.
const maxLine = 1 << 20

const mark = "\ufeff" // a byte order mark

// Read reads a file in the format that its name says: .csv or .tsv, .jsonl or
// .ndjson with an object per line, or .json, which may be an array.
func Read(r io.Reader, name string, format Format) (iter.Seq2[Row, error], error) {
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
		return readCSV(in, format)
	case ".jsonl", ".ndjson":
		return readLines(in), nil
	case ".json":
		return readValues(in)
	}
	return nil, target.Usage("outbox: the input's format does not show in its name: .csv, .tsv, .jsonl or .json")
}

// ErrStopped is in the error of a row behind which nothing can be read.
var ErrStopped = errors.New("nothing is read from here on")

func stopped(line int, why string) Row {
	return Row{Line: line, Err: fmt.Errorf("%s: %w", why, ErrStopped)}
}

func readLines(r io.Reader) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		s := bufio.NewScanner(r)
		s.Buffer(nil, maxLine)
		line := 1
		for ; s.Scan(); line++ {
			// Files that were put together have a byte order mark in the middle, too.
			text := bytes.TrimSpace(bytes.TrimPrefix(s.Bytes(), []byte(mark)))
			if len(text) > 0 && !yield(Row{Line: line, JSON: bytes.Clone(text)}, nil) {
				return
			}
		}
		switch err := s.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(stopped(line, "the line is longer than a record can be"), nil)
		case err != nil:
			yield(Row{}, err)
		}
	}
}

// readValues reads objects, or an array of them, however they are broken into lines.
func readValues(r io.Reader) (iter.Seq2[Row, error], error) {
	text, err := io.ReadAll(r)
	return func(yield func(Row, error) bool) {
		// What an object may hold is checked where it is decoded.
		d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		if d.PeekKind() == '[' {
			d.ReadToken()
		}
		line, at := 1, 0
		for {
			if d.PeekKind() == ']' {
				d.ReadToken()
			}
			value, err := d.ReadValue()
			begin := int(d.InputOffset()) - len(value)
			begin += len(text[begin:]) - len(bytes.TrimLeft(text[begin:], " \t\r\n,"))
			line, at = line+bytes.Count(text[at:begin], []byte("\n")), begin
			switch {
			case err == io.EOF:
				return
			case err != nil:
				yield(stopped(line, "this is no JSON"), nil)
				return
			case !yield(Row{Line: line, JSON: bytes.Clone(value)}, nil):
				return
			}
		}
	}, err
}

func readCSV(in *bufio.Reader, format Format) (iter.Seq2[Row, error], error) {
	// The separator is the one with which the first line names the key.
	first, _ := in.Peek(maxLine)
	first, _, _ = bytes.Cut(first, []byte("\n"))
	r := csv.NewReader(in)
	for _, r.Comma = range ",;\t" {
		names := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(first), `"`, "")), string(r.Comma))
		if slices.Contains(names, format.Key) {
			break
		}
	}
	header, err := r.Read()
	if err != nil || !slices.Contains(header, format.Key) {
		return nil, target.Usage("outbox: the input does not begin with a CSV header that names %s", format.Key)
	}
	for i, name := range header {
		sample := "text"
		if slices.Contains(format.Raw, name) {
			sample = "null"
		}
		record, _ := object([]string{name}, []string{sample}, format.Raw)
		if slices.Contains(header[:i], name) {
			return nil, target.Usage("outbox: the header names a column twice: %s", name)
		} else if format.Check == nil {
			continue
		} else if err := format.Check(record); err != nil {
			return nil, target.Usage("outbox: the header: %v", err)
		}
	}
	return func(yield func(Row, error) bool) {
		for {
			cells, err := r.Read()
			wrong, _ := errors.AsType[*csv.ParseError](err)
			var row Row
			switch {
			case err == io.EOF:
				return
			case wrong == nil && err != nil:
				yield(Row{}, err)
				return
			case wrong == nil:
				row.Line, _ = r.FieldPos(0)
				row.JSON, row.Err = object(header, cells, format.Raw)
			case wrong.StartLine != wrong.Line, strings.Contains(strings.Join(cells, ""), "\n"):
				// A quote that is not closed takes what follows into its cell.
				yield(stopped(wrong.StartLine, "the quotes do not match"), nil)
				return
			case errors.Is(err, csv.ErrFieldCount):
				row = Row{Line: wrong.Line, Err: errors.New("the row has more or fewer fields than the header")}
			default:
				row = Row{Line: wrong.Line, Err: errors.New("the quotes in the line do not match")}
			}
			if !yield(row, nil) {
				return
			}
		}
	}, nil
}

// object makes an object of the cells that are not empty.
func object(header, cells, raw []string) ([]byte, error) {
	root := make(map[string]any)
	for i, path := range header {
		if cells[i] == "" {
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
		at[names[len(names)-1]] = cells[i]
		if slices.Contains(raw, path) {
			at[names[len(names)-1]] = jsontext.Value(cells[i])
			if strings.TrimSpace(cells[i]) != cells[i] || !jsontext.Value(cells[i]).IsValid() {
				return nil, fmt.Errorf("%s is no JSON", path)
			}
		}
	}
	text, err := json.Marshal(root)
	if err != nil {
		return nil, errors.New("the line is not UTF-8")
	}
	return text, nil
}
