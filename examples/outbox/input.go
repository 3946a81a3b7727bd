package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
	"path/filepath"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/refunds"
)

// A row is a record of the input, or why there is none.
type row struct {
	line   int // where it begins, from 1
	record *refunds.Refund
	bad    error // quotes nothing of the line
}

// readRows reads an input in the format that its name says.
func readRows(r io.Reader, name string) (iter.Seq2[row, error], error) {
	in := &lines{reader: bufio.NewReaderSize(r, maxLine)}
	begin, _ := in.reader.Peek(3)
	switch {
	case bytes.HasPrefix(begin, []byte("\xff\xfe")), bytes.HasPrefix(begin, []byte("\xfe\xff")):
		return nil, target.Usage("outbox: the input is UTF-16, save it as UTF-8")
	case string(begin) == "\ufeff":
		in.reader.Discard(len(begin))
	}
	switch filepath.Ext(name) {
	case ".csv":
		return readCSV(in)
	case ".jsonl", ".ndjson":
		return readJSONL(in), nil
	}
	return nil, target.Usage("outbox: the input's format does not show in its name: .csv or .jsonl")
}

func readJSONL(in *lines) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		for {
			line, err := in.nextFilled()
			if err == io.EOF {
				return
			}
			r := row{line: line.number, bad: line.bad}
			if r.bad == nil {
				r.record, r.bad = parseJSON(line.text)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// maxLine bounds a line, so that a file that is none does not come into memory.
const maxLine = 1 << 20

// A line is what stands between line breaks.
type line struct {
	number int
	text   []byte // without the line break
	bad    error
}

// lines reads lines, and takes back some that were read.
type lines struct {
	reader *bufio.Reader
	number int
	back   []line // in order
}

func (l *lines) next() (line, error) {
	if len(l.back) > 0 {
		first := l.back[0]
		l.back = l.back[1:]
		return first, nil
	}
	text, err := l.reader.ReadSlice('\n')
	if err == io.EOF && len(text) == 0 {
		return line{}, io.EOF
	}
	l.number++
	found := line{number: l.number}
	for errors.Is(err, bufio.ErrBufferFull) {
		found.bad = errors.New("the line is longer than a record can be")
		text, err = l.reader.ReadSlice('\n')
	}
	if err != nil && err != io.EOF {
		return line{}, err
	}
	text = bytes.TrimSuffix(text, []byte("\n"))
	found.text = bytes.Clone(bytes.TrimSuffix(text, []byte("\r")))
	return found, nil
}

// nextFilled passes over empty lines.
func (l *lines) nextFilled() (line, error) {
	for {
		found, err := l.next()
		if err != nil || found.bad != nil || len(bytes.TrimSpace(found.text)) > 0 {
			return found, err
		}
	}
}

func (l *lines) unread(read []line) { l.back = append(read, l.back...) }
