package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/carddata/carddata-go/internal/mask"
)

// Rows is the shape of the input. It travels to the workers.
type Rows struct {
	Kind, Header, Column  string
	Head                  string // Header without the reason of an earlier run
	Index, Fields, Prefix int
}

// Members of failed rows: why, and a line that is no JSON, as text.
const reasonName, unreadableName = "reason", "unreadable"

func (r *Rows) readHeader() error {
	names, err := csv.NewReader(strings.NewReader(r.Header)).Read()
	if err != nil {
		return errors.New("the input does not begin with a CSV header")
	}
	r.Fields, r.Index = len(names), slices.Index(names, r.Column)
	if r.Index < 0 {
		return fmt.Errorf("the input has no column %q (-column)", r.Column)
	}
	r.Head = strings.TrimSuffix(r.Header, ","+reasonName)
	return nil
}

// card returns a row as it travels, and the card in it.
func (r *Rows) card(line string) (row, card string, err error) {
	if r.Kind == ".ndjson" {
		var object map[string]any
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if d.Decode(&object) != nil || object == nil {
			text, _ := json.Marshal(line)
			return `{"` + unreadableName + `":` + string(text) + "}", "", errors.New("not a JSON object")
		}
		if text, ok := object[unreadableName].(string); ok {
			return r.card(text)
		}
		if at := strings.LastIndex(line, `"`+reasonName+`":`); at > 0 && object[reasonName] != nil {
			line = strings.TrimSuffix(line[:at], ",") + "}"
		}
		if object[r.Column] == nil {
			return line, "", errors.New("no card")
		}
		return line, fmt.Sprint(object[r.Column]), nil
	}
	fields, err := csv.NewReader(strings.NewReader(line)).Read()
	if err == nil && r.Head != r.Header {
		line = strings.TrimSuffix(line, ","+csvLine(fields[len(fields)-1]))
	}
	if err != nil || len(fields) != r.Fields {
		return line, "", errors.New("not a record of as many fields as the header")
	}
	return line, fields[r.Index], nil
}

// tokenise makes what is looked up of a card, where that is a token. A file of your
// own sets it in its init, which every worker runs.
var tokenise func(ctx context.Context, card string) (string, error)

var cardNumber = regexp.MustCompile(`(?s)(\p{Nd}.*){12}`)

// identify makes what is looked up, and the key of every shuffle: the first digits
// of a card or its token, and never a card number.
func identify(ctx context.Context, card string, prefix int) (id string, err error) {
	if tokenise != nil {
		id, err = tokenise(ctx, card)
	} else {
		id = cut(card, prefix)
	}
	if err == nil && id == "" {
		err = errors.New("no card")
	}
	if cardNumber.MatchString(id) {
		return "", errors.New("the identifier may be a card number")
	}
	return id, err
}

// cut returns the first digits of a card, whatever stands between them, as the library's
// PrefixLength does. What has letters and no more digits than a token is looked up whole.
func cut(card string, prefix int) string {
	digits := []rune(mask.Digits(card))
	if len(digits) < 12 && strings.ContainsFunc(card, unicode.IsLetter) {
		return card
	}
	return string(digits[:min(prefix, len(digits))])
}

// with appends fields, or members, to a row that is otherwise as it came.
func (r *Rows) with(row string, names []string, values ...string) string {
	if r.Kind != ".ndjson" {
		return row + "," + csvLine(values...)
	}
	object := strings.TrimSuffix(strings.TrimRight(row, " \t"), "}")
	for i, value := range values {
		if i > 0 || !strings.HasSuffix(strings.TrimRight(object, " \t"), "{") {
			object += ","
		}
		encoded, _ := json.Marshal(value) // strings can not fail
		object += `"` + names[i] + `":` + string(encoded)
	}
	return object + "}"
}

// joined is a row in one of the outputs.
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
