package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// decodeErrorBody fills in what an error body says, in the shape documented for
// the download endpoint, {"error":{code,message,details}}, or in one of two
// shapes that occur in the field. A body of any other kind leaves f as it is:
// reporting a failure never fails over its details.
func decodeErrorBody(f *Failure) {
	if !bytes.HasPrefix(bytes.TrimSpace(f.Body), []byte("{")) {
		return
	}
	var body struct {
		Error        json.RawMessage
		Code         json.RawMessage
		Message      json.RawMessage
		Details      json.RawMessage
		ErrorDetails json.RawMessage
	}
	if json.Unmarshal(f.Body, &body) != nil {
		return
	}
	inner := body
	switch {
	case json.Unmarshal(body.Error, &inner) == nil && isObject(body.Error):
	case json.Unmarshal(body.ErrorDetails, &inner) == nil && isObject(body.ErrorDetails):
		inner.Code, inner.Details = body.Code, body.ErrorDetails
	}
	f.Code, f.Message = text(inner.Code), text(inner.Message)
	if len(inner.Details) > 0 && string(inner.Details) != "null" {
		f.Details = inner.Details
	}
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// text reads a string, and keeps a number or anything else as it was written.
func text(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// Malformed says where a body stopped being the documented JSON. The error of
// encoding/json is not kept, as it quotes the body.
func Malformed(err error) error {
	words := matrix[answerMalformed].words
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		words += fmt.Sprintf(": a syntax error at byte %d", syntax.Offset)
	case errors.As(err, &mismatch) && mismatch.Field != "":
		words += fmt.Sprintf(": %s has another type", mismatch.Field)
	}
	return because(words)
}

// Unusable says in safe words why a body is not the documented one.
func Unusable(words string) error {
	return because(matrix[answerMalformed].words + ": " + words)
}
