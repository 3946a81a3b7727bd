package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/carddata/carddata-go/examples/tools/internal/cli"
)

// maxRow bounds a row. Otherwise a missing line break or quote would load the rest of the
// file into memory.
const maxRow = 1 << 18

// A format reads rows and writes them with more columns.
type format interface {
	// begin reads the header, if the format has one, and returns the header of the output.
	begin(in *input) ([]byte, error)
	// end returns the length of the first row in text, with its line break, or 0 if the
	// row goes on after text. If all is true, text is the rest of the input.
	end(text []byte, all bool) (int, *problem)
	// card finds the card in a row.
	card(text []byte) (string, *problem)
	// enrich appends the row with the values of the columns to out.
	enrich(out, text []byte, values []any) ([]byte, error)
}

// A row is one record of the input.
type row struct {
	line      int    // where it begins, from 1
	end       int64  // offset of the next row
	text      []byte // without the line break; valid until the next row is read
	lineBreak string
	card      string   // "" in a blank row
	stripped  bool     // separators were removed from the card
	bad       *problem // why the card cannot be looked up, or nil
}

// A problem is the reason why a row has no result. Its text quotes nothing from the row.
type problem struct{ kind, text string }

// An input reads rows, one at a time.
type input struct {
	format format
	reader *bufio.Reader
	line   int   // of the next byte
	offset int64 // of the next byte
	bom    bool
}

// openInput returns the input, and the header of the output.
func openInput(from io.Reader, f format) (*input, []byte, error) {
	in := &input{format: f, line: 1, reader: bufio.NewReaderSize(from, maxRow)}
	begin, err := in.reader.Peek(3)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(begin, []byte("\xff\xfe")), bytes.HasPrefix(begin, []byte("\xfe\xff")):
		return nil, nil, cli.Usage("enrich: the input is UTF-16, save it as UTF-8")
	case string(begin) == "\ufeff":
		in.bom = true
		in.consume(begin)
	}
	head, err := f.begin(in)
	return in, head, err
}

// hasCard reports whether the row has a card to look up.
func (r *row) hasCard() bool { return r.bad == nil && r.card != "" }

// next returns the next row, or io.EOF. An empty line is a blank row.
func (in *input) next() (row, error) {
	r := row{line: in.line}
	raw, bad, err := in.take(in.format.end)
	if err != nil {
		return r, err
	}
	r.text, r.lineBreak = splitLineBreak(raw)
	r.end, r.bad = in.offset, bad
	if bad != nil || len(r.text) == 0 {
		return r, nil
	}
	if r.card, r.bad = in.format.card(r.text); r.bad == nil {
		r.card, r.stripped, r.bad = identifier(r.card)
	}
	return r, nil
}

// take consumes and returns the text up to the end that the function finds. It fills the
// reader's buffer only if the end is not in it yet.
func (in *input) take(end func([]byte, bool) (int, *problem)) ([]byte, *problem, error) {
	for all := false; ; {
		text, _ := in.reader.Peek(in.reader.Buffered())
		if all && len(text) == 0 {
			return nil, nil, io.EOF
		}
		if n, bad := end(text, all); n > 0 {
			if n == maxRow && text[n-1] != '\n' {
				return text, &problem{"too_long", "the row is longer than a row can be"}, in.skipLine()
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
	in.reader.Discard(len(text))
	in.offset += int64(len(text))
	in.line += bytes.Count(text, []byte("\n"))
	return text
}

// skipLine consumes the rest of a line that is too long.
func (in *input) skipLine() error {
	for {
		part, err := in.reader.ReadSlice('\n')
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

// splitLineBreak splits a row from its line break. If the last row has none, it gets one in
// the output.
func splitLineBreak(raw []byte) ([]byte, string) {
	text := bytes.TrimSuffix(raw, []byte("\n"))
	if trimmed := bytes.TrimSuffix(text, []byte("\r")); len(trimmed) < len(text) {
		return trimmed, "\r\n"
	}
	return text, "\n"
}

// lineEnd finds the end of a row that is one line.
func lineEnd(text []byte, all bool) (int, *problem) {
	if n := bytes.IndexByte(text, '\n') + 1; n > 0 || !all {
		return n, nil
	}
	return len(text), nil
}
