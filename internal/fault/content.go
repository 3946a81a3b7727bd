package fault

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// JudgeContent judges the beginning of a stream: a page, or the documented error object, is
// no content. The first byte nearly always decides.
func JudgeContent(h http.Header, text *bufio.Reader) *Verdict {
	switch first := firstOf(text); {
	case first == '<' && holdsPage(h, text):
		return HTMLResponse
	case first == '{' && holdsError(text):
		return ErrorObject
	}
	return Success
}

// firstOf reads up to the first character that is not blank, and returns it; 0 if there is
// none.
func firstOf(text *bufio.Reader) rune {
	for {
		switch c, _, err := text.ReadRune(); {
		case err != nil:
			return 0
		case !isBlank(c):
			text.UnreadRune()
			return c
		}
	}
}

// enoughOfPage is where a page has shown itself.
const enoughOfPage = 4 << 10

// holdsPage reports whether a text is a page. Reading the text says if it stalled or broke off.
func holdsPage(h http.Header, text *bufio.Reader) bool {
	begin, _ := text.Peek(enoughOfPage)
	return beginsPage(h, begin)
}

// holdsError reports whether a body is a JSON object with the documented error, of any size
// and with any other members. Two kinds of object are content: an object with a list or an
// object before the error, and the first of several objects, as in a file with one object per
// line.
func holdsError(body io.Reader) bool {
	in := json.NewDecoder(body)
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
