// Package service simulates the services at next to no cost of its own, so that
// what is measured is the client.
package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// Card returns the i-th of the cards that are looked up, of 10 digits.
func Card(i int) string { return fmt.Sprintf("4%09d", i) }

const cardDigits = 10

// Cards returns n cards, of which the first is the i-th.
func Cards(i, n int) []string {
	cards := make([]string, n)
	for j := range cards {
		cards[j] = Card(i + j)
	}
	return cards
}

// A responseTemplate is a response to a number of cards, with the places where they
// are named.
type responseTemplate struct {
	text  []byte
	marks []mark
}

type mark struct{ offset, item, digits int }

var namesCard = regexp.MustCompile(`"(bin|bin_min|bin_max)":"(\d*)"`)

func newResponseTemplate(items int) *responseTemplate {
	t := &responseTemplate{text: []byte(`{"cards":[`)}
	for i, item := range fullItems(items) {
		if i > 0 {
			t.text = append(t.text, ',')
		}
		for _, place := range namesCard.FindAllSubmatchIndex(item, -1) {
			t.marks = append(t.marks, mark{len(t.text) + place[4], i, min(place[5]-place[4], cardDigits)})
		}
		t.text = append(t.text, item...)
	}
	t.text = append(t.text, "]}"...)
	// Whatever follows the card's digits in its range is all zeros or all nines.
	for _, m := range t.marks {
		end := m.offset + bytes.IndexByte(t.text[m.offset:], '"')
		fill := t.text[end-1]
		for i := m.offset + m.digits; i < end; i++ {
			t.text[i] = fill
		}
	}
	return t
}

// fullItems returns items that state everything, of cards of different banks.
func fullItems(n int) []json.RawMessage {
	const full = 2200 // bytes
	var items []json.RawMessage
	for i := 0; len(items) < n; i++ {
		if item := sandbox.SyntheticCard(Card(i * 1_000_003)); len(item) >= full {
			items = append(items, item)
		}
	}
	return items
}

// A response is a template that names the cards of a request. It is put together
// while it is read, and so takes no memory.
type response struct {
	*responseTemplate
	cards  []string
	offset int
	next   int // mark
}

func (a *response) Read(p []byte) (int, error) {
	if a.offset == len(a.text) {
		return 0, io.EOF
	}
	n := copy(p, a.text[a.offset:])
	for ; a.next < len(a.marks); a.next++ {
		m := a.marks[a.next]
		at := m.offset - a.offset
		if at >= n {
			break
		}
		digits := a.cards[m.item][:m.digits]
		if at < 0 {
			copy(p[:n], digits[min(-at, len(digits)):])
		} else {
			copy(p[at:n], digits)
		}
		if at+m.digits > n {
			break // the rest is for the next Read
		}
	}
	a.offset += n
	return n, nil
}

func (a *response) Close() error { return nil }

// requested returns the cards of a request.
func requested(body []byte) []string {
	var cards []string
	rest := string(body)
	for {
		_, after, ok := strings.Cut(rest, `"card":"`)
		if !ok {
			return cards
		}
		card, after, _ := strings.Cut(after, `"`)
		cards, rest = append(cards, card), after
	}
}
