package bins

import (
	"os"
	"reflect"
	"testing"
	"time"
)

// packed is a card as the memory keeps it.
func packed(card *Card) *entry {
	return new(MemoryCache).pack(cacheKey{id: "400000"}, &Result{Data: &Data{Card: card}}, time.Now())
}

// A card in memory has every field but those of a single card.
func TestEntryKeepsEveryField(t *testing.T) {
	text, err := os.ReadFile("testdata/response.json") // every field has a value
	if err != nil {
		t.Fatal(err)
	}
	resp, err := decode(text, false, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &resp.Cards[0]
	got := packed(r.Data.Card).result("400000")
	if r.forgetCard(""); !reflect.DeepEqual(got.Data.Card, r.Data.Card) {
		t.Errorf("%+v is made of %+v", got.Data.Card, r.Data.Card)
	}
}

// Cards of different ranges share the other facts, also if the additional brands repeat the range.
func TestRangesShareTheirCard(t *testing.T) {
	card := func(low, high string) *Card {
		return &Card{BINMin: low, BINMax: high, AdditionalCardBrands: []AdditionalCardBrand{
			{CardBrand: "own", BINMin: low, BINMax: high}, {CardBrand: "other", BINMin: "1", BINMax: high}, {},
		}}
	}
	first, second := card("400000", "400009"), card("500000", "500009")
	e := packed(second)
	if e.card != packed(first).card {
		t.Error("cards of two ranges share nothing")
	}
	if got := e.result("400000").Data.Card; !reflect.DeepEqual(got, second) {
		t.Errorf("what they share makes %+v, not %+v", got, second)
	}
	if !reflect.DeepEqual(first, card("400000", "400009")) {
		t.Error("sharing changed a card")
	}
	for _, none := range [][]AdditionalCardBrand{nil, {}} {
		if got := packed(&Card{AdditionalCardBrands: none}).result("").Data.Card.AdditionalCardBrands; !reflect.DeepEqual(got, none) {
			t.Errorf("%#v brands became %#v", none, got)
		}
	}
}
