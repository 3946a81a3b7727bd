package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/carddata/carddata-go/internal/mask"
)

// Rows is the shape of the input. It is sent to the workers.
type Rows struct {
	Header, Column        string
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

// card returns the card in a row.
func (r *Rows) card(line string) (string, error) {
	fields, err := csv.NewReader(strings.NewReader(line)).Read()
	if err != nil || len(fields) != r.Fields {
		return "", errors.New("not a record of as many fields as the header")
	}
	return fields[r.Index], nil
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

// joined returns a row of one of the outputs. The row of the input is unchanged in it.
func joined(row string, a Answer) string {
	if a.Reason != "" {
		return row + "," + csvLine(a.Reason)
	}
	return row + "," + csvLine(a.Brand, a.Kind, a.Country, a.Bank)
}

func csvLine(fields ...string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write(fields)
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}
