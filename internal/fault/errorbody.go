package fault

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// MaxErrorBody is as much of an error body as is read and kept.
const MaxErrorBody = 64 << 10

// blank characters may stand before a page or an object: space, and the byte order mark that
// some programs write first.
const blank = "\ufeff\t\n\f\r "

// speaksOfError reports whether a receipt has a member named error or errors that says something,
// or may have one because it is no whole JSON value, or is a problem of RFC 9457.
func speaksOfError(h http.Header, receipt []byte) bool {
	if label := mediaType(h); label == "application/problem+json" || label == "application/problem+xml" {
		return true
	}
	members := object(receipt)
	if members == nil && !json.Valid(bytes.TrimLeft(receipt, blank)) {
		return bytes.Contains(receipt, []byte(`"error"`)) || bytes.Contains(receipt, []byte(`"errors"`))
	}
	for name, value := range members {
		if (strings.EqualFold(name, "error") || strings.EqualFold(name, "errors")) && !SaysNothing(value) {
			return true
		}
	}
	return false
}

// SaysNothing reports whether the value of a member named error or errors speaks of no error.
func SaysNothing(value []byte) bool {
	var v any
	if json.Unmarshal(value, &v) != nil {
		return len(bytes.TrimSpace(value)) == 0
	}
	switch v := v.(type) {
	case bool:
		return !v
	case float64:
		return v == 0
	case string:
		return strings.TrimSpace(v) == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return true // null
}

// object returns the members of a JSON object, and nil for anything else.
func object(raw json.RawMessage) (members map[string]json.RawMessage) {
	if json.Unmarshal(bytes.TrimLeft(raw, blank), &members) != nil {
		return nil
	}
	return members
}

// text reads a string. It returns any other value as it was written.
func text(raw json.RawMessage) (s string) {
	if json.Unmarshal(raw, &s) != nil { // it accepts null
		return string(raw)
	}
	return s
}

// Decode reads an error body. It knows the shape documented for the download endpoint,
// {"error":{code,message,details}}, and two other shapes that services use. It leaves r
// unchanged for any other body, and for one that is cut off.
func (r *Response) Decode() (code string) {
	body := object(r.Body)
	said, message := body["code"], body["message"]
	if inner := object(body["error"]); inner != nil {
		said, message = inner["code"], inner["message"]
	} else if inner := object(body["errorDetails"]); inner != nil {
		message = inner["message"]
	}
	r.Message = text(message)
	return text(said)
}

// ErrorInPlaceOf reports whether a body has the documented error, {"error":{code,message,details}},
// and lacks the member that a success has.
func ErrorInPlaceOf(member string, body []byte) bool {
	members := object(body)
	said := object(members["error"])
	_, found := members[member]
	return !found && text(said["code"])+text(said["message"]) != ""
}

// Malformed says where a body stopped being the documented JSON. It drops the error of
// encoding/json, which quotes the body.
func Malformed(err error) error {
	msg := MalformedResponse.Text
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		msg += fmt.Sprintf(": a syntax error at byte %d", syntax.Offset)
	}
	return NewError(msg)
}

// Unusable says in safe words why a body is not the documented JSON.
func Unusable(msg string) error {
	return NewError(MalformedResponse.Text + ": " + msg)
}
