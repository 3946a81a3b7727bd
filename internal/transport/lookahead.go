package transport

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// peek looks for a page, and for the documented error object, in the body of a 200. It returns the
// beginning of the body, and its verdict, if it is one. The first byte nearly always decides. The
// bytes and read errors that it met stay in the stream.
func (s *stream) peek(h http.Header, errorContent bool) (found *verdict, start []byte) {
	buffered := bufio.NewReaderSize(s.reader, maxErrorBody)
	s.reader = buffered
	switch {
	case isPage(h, pageOf(&lookahead{stream: s, from: buffered})):
		found = htmlResponse
	case !errorContent && holdsError(&lookahead{stream: s, from: buffered}):
		found = errorObject
	default:
		return success, nil
	}
	start, _ = buffered.Peek(buffered.Buffered())
	return found, start
}

// pageOf returns the start of a body that may be a page, and nil if its first byte tells that it is
// none.
func pageOf(body io.Reader) []byte {
	in := bufio.NewReader(body)
	var start []byte
	for {
		c, err := in.ReadByte()
		if err != nil {
			return nil
		}
		if start = append(start, c); c == '<' {
			break
		}
		if strings.IndexByte(blank+"\x00\xfe\xff", c) < 0 {
			return nil
		}
	}
	rest := make([]byte, 2*aStart)
	n, _ := io.ReadFull(in, rest)
	return append(start, rest[:n]...)
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
	in := json.NewDecoder(trimmed)
	in.UseNumber()
	in.Token()
	for in.More() {
		name, _ := in.Token()
		value, err := in.Token()
		switch _, nested := value.(json.Delim); {
		case name == "error" && value == json.Delim('{'):
			return saysError(in)
		case nested || err != nil:
			return false
		}
	}
	return false
}

// saysError reads the object that is the value of the member error. It is an error if it has a
// code or a message and no content follows, or if the text is cut off within it. A text that
// stalled is not cut off: reading it says so.
func saysError(in *json.Decoder) bool {
	for in.More() {
		name, _ := in.Token()
		var value any
		err := in.Decode(&value)
		switch {
		case errors.Is(err, ErrTimeout) || errors.Is(err, context.Canceled):
			return false
		case err != nil:
			return true
		case (name == "code" || name == "message") && value != nil && value != "":
			return areLast(in)
		}
	}
	return false
}

// areLast reads to the end of the first object, and reports whether no content follows. A
// cut-off object has no content after it.
func areLast(in *json.Decoder) bool {
	for depth := 2; depth > 0; {
		switch token, err := in.Token(); {
		case err != nil:
			return true
		case token == json.Delim('{') || token == json.Delim('['):
			depth++
		case token == json.Delim('}') || token == json.Delim(']'):
			depth--
		}
	}
	_, err := in.Token()
	return err != nil && !is[*json.SyntaxError](err)
}
