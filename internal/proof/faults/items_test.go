package faults

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/carddata/carddata-go/bins"
)

// An item is what the service says of a card.
type item struct {
	BIN   *string              `json:"bin"`
	Data  map[string]*cardData `json:"data,omitempty"`
	Error string               `json:"error,omitempty"`
}

type cardData struct {
	Brand  string `json:"card_brand"`
	BINMin string `json:"bin_min,omitempty"`
	BINMax string `json:"bin_max,omitempty"`
	PAN    string `json:"pan_or_token,omitempty"`
}

// respondLookup is the service's response to a lookup: an item for each card, in
// its order and under its name, but for what befalls them.
func (s *service) respondLookup(body []byte, f items, c chance) response {
	var request struct{ Cards []struct{ Card string } }
	if json.Unmarshal(body, &request) != nil || len(request.Cards) == 0 || len(request.Cards) > bins.MaxCards {
		return response{status: http.StatusBadRequest}
	}
	list := []item{}
	for i, asked := range request.Cards {
		it := itemOf(asked.Card, f)
		switch {
		case c.percent(f.omitted):
			continue
		case c.percent(f.broken):
			it = item{Error: brandOf(asked.Card)}
		case c.percent(f.relabeled):
			stranger := fmt.Sprintf("9%07d", i)
			it.BIN, it.Data["card"].PAN = &stranger, ""
		}
		list = append(list, it)
		if c.percent(f.repeated) {
			list = append(list, it)
		}
		if c.percent(f.strangers) {
			list = append(list, itemOf(fmt.Sprintf("8%07d", i), f))
		}
	}
	if f.shuffled {
		c.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	}
	s.mu.Lock()
	for _, asked := range request.Cards {
		s.misled[asked.Card] = s.misled[asked.Card] || f.misleads()
		s.unnamed[asked.Card] = s.unnamed[asked.Card] || !names(list, asked.Card)
	}
	s.mu.Unlock()
	text, err := json.Marshal(map[string]any{"cards": list})
	if err != nil {
		panic(err)
	}
	return response{header: http.Header{"Content-Type": {"application/json"}}, body: text}
}

func itemOf(card string, f items) item {
	data := &cardData{Brand: brandOf(card)}
	bin := card
	switch f.echo {
	case firstEight:
		bin = firstDigits(card, 8)
	case firstSix:
		bin = firstDigits(card, 6)
	}
	if f.ranged {
		data.BINMin = firstDigits(card+"00000000", 8)
		data.BINMax = data.BINMin
	}
	if !f.silent {
		data.PAN = card
	}
	return item{BIN: &bin, Data: map[string]*cardData{"card": data}}
}

// misleads tells whether an item may be missing, or does not name its card.
func (f items) misleads() bool {
	return f.echo != asSent || f.omitted+f.repeated+f.broken+f.strangers+f.relabeled > 0
}

// names tells whether exactly one item names a card, as it was asked for.
func names(list []item, card string) bool {
	n := 0
	for _, it := range list {
		if it.BIN != nil && *it.BIN == card || it.Data != nil && it.Data["card"].PAN == card {
			n++
		}
	}
	return n == 1
}

// missing checks that a card without an item may be without one.
func (c *call) missing(card string) {
	misled, named := c.w.service.about(card)
	switch {
	case !misled:
		c.w.violate(wrongAnswer, "%s: %s is missing, and the service left out none", c, card)
	case named:
		c.w.violate(unanswered, "%s: %s is missing, and one item names it", c, card)
	}
	c.w.count("card missing")
}

// answered counts a card that one item names, among items that mislead.
func (c *call) answered(card string) {
	if misled, named := c.w.service.about(card); misled && named {
		c.w.count("card named among doubtful items")
	}
}

// about tells whether a response about a card misled, and whether all of them named it.
func (s *service) about(card string) (misled, named bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.misled[card], !s.unnamed[card]
}
