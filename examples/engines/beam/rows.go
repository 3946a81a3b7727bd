package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/carddata/carddata-go/internal/mask"
)

// Rows is the shape of the input. It is sent to the workers.
type Rows struct {
	Kind, Header, Column  string
	Index, Fields, Prefix int
}

// answerNames are the columns of known rows, and reasonName that of failed ones.
var answerNames = []string{"brand", "type", "country", "bank"}

const reasonName = "reason"

func (r *Rows) readHeader() error {
	names, err := csv.NewReader(strings.NewReader(r.Header)).Read()
	if err != nil {
		return errors.New("the input does not begin with a CSV header")
	}
	r.Fields, r.Index = len(names), slices.Index(names, r.Column)
	if r.Index < 0 {
		return fmt.Errorf("the input has no column %q (-column)", r.Column)
	}
	return nil
}

// card returns the row as it is passed on, and the card in it.
func (r *Rows) card(line string) (row, card string, err error) {
	if r.Kind == ".ndjson" {
		var object map[string]any
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if d.Decode(&object) != nil || object == nil {
			text, _ := json.Marshal(line) // strings cannot fail
			return `{"unreadable":` + string(text) + "}", "", errors.New("not a JSON object")
		}
		if object[r.Column] == nil {
			return line, "", errors.New("no card")
		}
		return line, fmt.Sprint(object[r.Column]), nil
	}
	fields, err := csv.NewReader(strings.NewReader(line)).Read()
	if err != nil || len(fields) != r.Fields {
		return line, "", errors.New("not a record of as many fields as the header")
	}
	return line, fields[r.Index], nil
}

// identify returns the identifier to look up, which is also the key of every shuffle: the
// first digits of a card, or a token. It is never a card number.
func identify(card string, prefix int) (string, error) {
	digits := []rune(mask.Digits(card))
	if len(digits) < 12 && strings.ContainsFunc(card, unicode.IsLetter) {
		return card, nil
	}
	if len(digits) == 0 {
		return "", errors.New("no card")
	}
	return string(digits[:min(prefix, len(digits))]), nil
}

// with appends fields or members to a row, which is unchanged otherwise.
func (r *Rows) with(row string, names []string, values ...string) string {
	if r.Kind != ".ndjson" {
		return row + "," + csvLine(values...)
	}
	object := strings.TrimSuffix(strings.TrimRight(row, " \t"), "}")
	for i, value := range values {
		if i > 0 || !strings.HasSuffix(strings.TrimRight(object, " \t"), "{") {
			object += ","
		}
		encoded, _ := json.Marshal(value)
		object += `"` + names[i] + `":` + string(encoded)
	}
	return object + "}"
}

// joined returns a row of one of the outputs.
func (r *Rows) joined(row string, a Answer) string {
	if a.Reason != "" {
		return r.with(row, []string{reasonName}, a.Reason)
	}
	return r.with(row, answerNames, a.Brand, a.Kind, a.Country, a.Bank)
}

func csvLine(fields ...string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write(fields)
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}
