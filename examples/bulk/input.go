package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"github.com/carddata/carddata-go/examples/internal/target"
)

// maxRow bounds a row, so that a missing line break or quote does not bring the
// rest of the file into memory.
const maxRow = 1 << 18

// A format is how an input holds its rows, and how they look in the output.
type format interface {
	// begin reads what stands before the rows, and returns what does in the output.
	begin(in *input) ([]byte, error)
	// end returns the length of the row that text begins with, its line break
	// included, or 0 if more of it is needed. There is no more if all is true.
	end(text []byte, all bool) (int, *problem)
	// card finds the card in a row.
	card(text []byte) (string, *problem)
	// enrich appends a row to the output, with the values of the columns.
	enrich(out, text []byte, values []any) ([]byte, error)
}

// A row is one record of the input.
type row struct {
	line      int    // where it begins, from 1
	text      []byte // without the line break; valid until the next row is read
	lineBreak string
	card      string
	stripped  bool     // the card, of separators
	bad       *problem // why there is no card to ask for; nil: there is one
}

// A problem is why a row has no answer. Its text quotes nothing of the row.
type problem struct {
	kind, text string
	unreadable bool // no columns can be added to the row
}

// An input reads rows, and holds no more than one of them.
type input struct {
	format format
	reader *bufio.Reader
	line   int       // of what comes next
	offset int64     // of what comes next
	hash   hash.Hash // of what came before
	rows   int64     // that were read
	bom    bool

	keepSeparators bool
	selected       []int // the lines whose rows are still to be read; nil: all
}

// openInput returns the input, and what stands before the rows in the output.
func openInput(from io.Reader, f format) (*input, []byte, error) {
	in := &input{format: f, line: 1, hash: sha256.New(), reader: bufio.NewReaderSize(from, maxRow)}
	begin, err := in.reader.Peek(3)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(begin, []byte("\xff\xfe")), bytes.HasPrefix(begin, []byte("\xfe\xff")):
		return nil, nil, target.Usage("bulk: the input is UTF-16, save it as UTF-8")
	case string(begin) == "\ufeff":
		in.bom = true
		in.consume(begin)
	}
	head, err := f.begin(in)
	return in, head, err
}

// next returns the next row, or io.EOF. Empty lines are no rows.
func (in *input) next() (row, error) {
	for {
		r := row{line: in.line}
		if in.selected != nil && len(in.selected) == 0 {
			return r, io.EOF
		}
		raw, bad, err := in.take(in.format.end)
		if err == io.EOF && in.selected != nil {
			return r, in.noRow()
		}
		if err != nil {
			return r, err
		}
		r.text, r.lineBreak = splitLineBreak(raw)
		if len(r.text) == 0 {
			continue
		}
		if in.selected != nil {
			if r.line < in.selected[0] {
				continue
			}
			if r.line > in.selected[0] {
				return r, in.noRow()
			}
			in.selected = in.selected[1:]
		}
		in.rows++
		if r.bad = bad; bad != nil {
			return r, nil
		}
		if r.card, r.bad = in.format.card(r.text); r.bad == nil {
			r.card, r.stripped, r.bad = identifier(r.card, in.keepSeparators)
		}
		return r, nil
	}
}

func (in *input) noRow() error {
	return target.Usage("bulk: line %d begins no row of the input (-retry-failed)", in.selected[0])
}

// take consumes what end delimits. It looks for that in what the reader holds
// already, which is never moved for it, and has the reader read more only if it
// is not there.
func (in *input) take(end func([]byte, bool) (int, *problem)) ([]byte, *problem, error) {
	for all := false; ; {
		text, _ := in.reader.Peek(in.reader.Buffered())
		if all && len(text) == 0 {
			return nil, nil, io.EOF
		}
		if n, bad := end(text, all); n > 0 {
			if n == maxRow && text[n-1] != '\n' {
				return text, &problem{kind: "too_long", text: "the row is longer than a row can be", unreadable: true}, in.skipLine()
			}
			return in.consume(text[:n]), bad, nil
		}
		_, err := in.reader.Peek(len(text) + 1)
		if all = err != nil; all && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, nil, err
		}
	}
}

func (in *input) consume(text []byte) []byte {
	in.hash.Write(text)
	in.reader.Discard(len(text))
	in.offset += int64(len(text))
	in.line += bytes.Count(text, []byte("\n"))
	return text
}

// skipLine consumes the rest of a line that is too long.
func (in *input) skipLine() error {
	for {
		part, err := in.reader.ReadSlice('\n')
		in.hash.Write(part)
		in.offset += int64(len(part))
		if !errors.Is(err, bufio.ErrBufferFull) {
			in.line++
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}

// sum is a hash of the bytes so far.
func (in *input) sum() (sum [sha256.Size]byte) {
	in.hash.Sum(sum[:0])
	return sum
}

// skip passes over the rows that an earlier run dealt with, if their bytes and
// those before them are still the same.
func (in *input) skip(to checkpoint) error {
	for in.rows < to.Totals.Rows {
		if _, err := in.next(); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
	}
	sum := in.sum()
	if to.Totals.Rows > 0 && (in.rows != to.Totals.Rows || in.offset != to.Input || hex.EncodeToString(sum[:]) != to.Hash) {
		return target.Usage("bulk: the input is not the one that the run began with: begin anew, with another -out")
	}
	return nil
}

// splitLineBreak tells a row from its line break, of which the last row may have
// none. It gets one in the output.
func splitLineBreak(raw []byte) ([]byte, string) {
	text := bytes.TrimSuffix(raw, []byte("\n"))
	if trimmed := bytes.TrimSuffix(text, []byte("\r")); len(trimmed) < len(text) {
		return trimmed, "\r\n"
	}
	return text, "\n"
}

// lineEnd delimits rows that are a line each.
func lineEnd(text []byte, all bool) (int, *problem) {
	if n := bytes.IndexByte(text, '\n') + 1; n > 0 || !all {
		return n, nil
	}
	return len(text), nil
}
