package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// An ndjsonFormat is one JSON object per line.
type ndjsonFormat struct {
	field   string
	columns []column
	names   [][]byte // of the columns, as JSON
}

func newNDJSONFormat(field string, columns []column) *ndjsonFormat {
	f := &ndjsonFormat{field: field, columns: columns}
	for _, c := range columns {
		name, _ := json.Marshal(c.name) // strings cannot fail
		f.names = append(f.names, name)
	}
	return f
}

func (f *ndjsonFormat) begin(*input) ([]byte, error) { return nil, nil }

func (f *ndjsonFormat) end(text []byte, all bool) (int, *problem) { return lineEnd(text, all) }

func (f *ndjsonFormat) card(text []byte) (string, *problem) {
	var members map[string]json.RawMessage
	switch {
	case !utf8.Valid(text): // decoding would replace the bytes, and another card would be looked up
		return "", &problem{"not_utf8", "the line is not valid UTF-8"}
	case json.Unmarshal(text, &members) != nil || members == nil:
		return "", &problem{"not_json", "the line is no JSON object"}
	}
	for _, c := range f.columns {
		if _, ok := members[c.name]; ok {
			return "", &problem{"member_exists", "the object has a member of a new column's name"}
		}
	}
	value, ok := members[f.field]
	if !ok || string(value) == "null" {
		return "", nil
	}
	var card string
	if json.Unmarshal(value, &card) == nil {
		return card, nil
	}
	// A number without point and exponent has lost nothing but leading zeros.
	if strings.Trim(string(value), "0123456789") == "" {
		return string(value), nil
	}
	return "", &problem{"not_text", "the card is neither text nor digits"}
}

// enrich leaves the line unchanged, and adds members before its last brace.
func (f *ndjsonFormat) enrich(out, text []byte, values []any) ([]byte, error) {
	text = bytes.TrimRight(text, " \t\r")
	out = append(out, text[:len(text)-1]...)
	empty := bytes.HasSuffix(bytes.TrimRight(out, " \t"), []byte("{"))
	for i, value := range values {
		encoded, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if i > 0 || !empty {
			out = append(out, ',')
		}
		out = append(out, f.names[i]...)
		out = append(append(out, ':'), encoded...)
	}
	return append(out, '}'), nil
}
