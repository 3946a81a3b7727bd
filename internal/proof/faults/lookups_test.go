package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// cardsFrom makes identifiers that no other caller asks for.
func cardsFrom(first, count int) []string {
	cards := make([]string, count)
	for i := range cards {
		cards[i] = fmt.Sprintf("4%07d", first+i)
	}
	return cards
}

func (w *world) lookup(client *bins.Client, name string, p patience, cards []string) error {
	ctx, c, stop := w.call(name, p, 30*time.Second)
	defer stop()
	var resp *bins.LookupResponse
	var err error
	if !c.guard(func() { resp, err = client.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards(cards...)}) }) {
		return errThrown
	}
	c.returned(err, attemptsOf(err))
	if err != nil {
		w.count("lookup failed")
		checkError[*bins.Error](c, err)
		return err
	}
	w.count("lookup answered")
	if !slices.EqualFunc(resp.Cards, cards, func(r bins.Result, card string) bool { return r.BIN == card && isAbout(&r, card) }) {
		w.violate(wrongAnswer, "%s: %v for %q", c, resp.Cards, cards)
	}
	return nil
}

// isAbout tells whether a result is the one that the service has for a card.
func isAbout(r *bins.Result, card string) bool {
	found, err := r.Card()
	return err == nil && found.CardBrand == brandOf(card)
}

// brandOf is what tells the items of two cards apart.
func brandOf(card string) string { return "brand of " + card }

func (w *world) load(loader *bins.Loader, name string, p patience, card string) error {
	const window = 2 * time.Millisecond
	ctx, c, stop := w.call(name, p, 30*time.Second+window)
	defer stop()
	c.shared = true
	var result bins.Result
	var err error
	if !c.guard(func() { result, err = loader.Load(ctx, card) }) {
		return errThrown
	}
	c.returned(err, -1)
	switch {
	case err == nil && !isAbout(&result, card):
		w.violate(wrongAnswer, "%s: %v for %s", c, result, card)
	case err == nil:
		w.count("load answered")
	case errors.Is(err, bins.ErrMissing):
		w.violate(wrongAnswer, "%s: %s is missing", c, card)
	default:
		w.count("load failed")
		checkError[*bins.Error](c, err)
		if errors.Is(err, context.Canceled) && ctx.Err() == nil {
			w.violate(wrongAnswer, "%s: canceled by another caller", c)
		}
	}
	return err
}

// An item is what the service says of a card.
type item struct {
	BIN  string              `json:"bin"`
	Data map[string]cardData `json:"data"`
}

type cardData struct {
	Brand string `json:"card_brand"`
}

// respondLookup is the service's response to a lookup: an item for each card, in its order and
// under its name. bins/internal/match has the responses of services that do otherwise.
func (s *service) respondLookup(body []byte) response {
	var request struct{ Cards []struct{ Card string } }
	if json.Unmarshal(body, &request) != nil || len(request.Cards) == 0 || len(request.Cards) > bins.MaxCards {
		return response{status: http.StatusBadRequest}
	}
	var list []item
	for _, asked := range request.Cards {
		list = append(list, item{asked.Card, map[string]cardData{"card": {brandOf(asked.Card)}}})
	}
	text, err := json.Marshal(map[string]any{"cards": list})
	if err != nil {
		panic(err)
	}
	return response{header: http.Header{"Content-Type": {"application/json"}}, body: text}
}
