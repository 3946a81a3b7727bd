package transport

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// peek looks for the documented error object in the body of a 200. It returns the beginning
// of the body if it is one. The first byte nearly always decides. The bytes and read errors
// that it met stay in the stream.
func (s *stream) peek() (errorObject []byte) {
	buffered := bufio.NewReaderSize(s.reader, maxErrorBody)
	s.reader = buffered
	if !holdsError(&lookahead{stream: s, from: buffered}) {
		return nil
	}
	errorObject, _ = buffered.Peek(buffered.Buffered())
	return errorObject
}

// A lookahead reads the beginning of a stream without consuming it. It fails at the end of
// the buffer.
type lookahead struct {
	stream *stream
	from   *bufio.Reader
	read   int
}

func (l *lookahead) Read(p []byte) (int, error) {
	if l.read == l.from.Buffered() {
		l.stream.timer.Reset(l.stream.inv.timeout)
		if _, err := l.from.Peek(l.read + 1); err != nil {
			return 0, err
		}
	}
	ahead, _ := l.from.Peek(l.from.Buffered())
	n := copy(p, ahead[l.read:])
	l.read += n
	return n, nil
}

// holdsError reports whether a body is a JSON object with the documented error, of any size
// and with any other members. Two kinds of object are content: an object with a list or an
// object before the error, and the first of several objects, as in a file with one object per
// line.
func holdsError(body io.Reader) bool {
	trimmed := bufio.NewReader(body)
	for {
		c, _, err := trimmed.ReadRune()
		if err != nil || c != '{' && !strings.ContainsRune(blank, c) {
			return false
		}
		if c == '{' {
			break
		}
	}
	trimmed.UnreadRune()
	t := &tokens{from: json.NewDecoder(trimmed)}
	t.from.UseNumber()
	t.next()
	for {
		name, value := t.next(), t.next()
		switch _, nested := value.(json.Delim); {
		case name == "error" && value == json.Delim('{'):
			return t.sayError() && t.areLast()
		case nested || t.err != nil: // a nested value, or the end of the object
			return false
		}
	}
}

// tokens reads the tokens of a JSON text.
type tokens struct {
	from  *json.Decoder
	depth int
	err   error // the error that ended the tokens
}

// next returns nil for null, and after the last token.
func (t *tokens) next() json.Token {
	token, err := t.from.Token()
	t.err = cmp.Or(t.err, err)
	switch token {
	case json.Delim('{'), json.Delim('['):
		t.depth++
	case json.Delim('}'), json.Delim(']'):
		t.depth--
	}
	return token
}

// skip reads until depth objects and lists are open.
func (t *tokens) skip(depth int) {
	for t.depth > depth && t.err == nil {
		t.next()
	}
}

// sayError reads the open object and reports whether it is an error: it has a code or a
// message, or the text is cut off within the code, the message or the details.
func (t *tokens) sayError() bool {
	for depth := t.depth; ; {
		name := t.next()
		if _, ok := name.(string); !ok { // the end of the object or of the text
			return false
		}
		value := t.next()
		if (name == "code" || name == "message") && value != nil && value != "" {
			return true
		}
		if t.skip(depth); t.err != nil {
			// Nothing is cut off that only stalled: reading it says so.
			stalled := errors.Is(t.err, ErrTimeout) || errors.Is(t.err, context.Canceled)
			return !stalled && (name == "code" || name == "message" || name == "details")
		}
	}
}

// areLast reads to the end of the first object, and reports whether no content follows. A
// cut-off object has no content after it.
func (t *tokens) areLast() bool {
	if t.skip(0); t.err != nil {
		return true
	}
	after := t.next()
	_, isText := t.err.(*json.SyntaxError)
	return after == nil && t.err != nil && !isText
}
