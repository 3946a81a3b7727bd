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
	resp, err := decode(text, false)
	if err != nil {
		t.Fatal(err)
	}
	r := &resp.Cards[0]
	got := packed(r.Data.Card).result("400000")
	if r.forgetCard(""); !reflect.DeepEqual(got.Data.Card, r.Data.Card) {
		t.Errorf("%+v is made of %+v", got.Data.Card, r.Data.Card)
	}
}

// Cards of different ranges share the other facts.
func TestRangesShareTheirCard(t *testing.T) {
	first, second := packed(&Card{CardBrand: "VISA", BINMin: "400000"}), packed(&Card{CardBrand: "VISA", BINMin: "500000"})
	if first.card != second.card || first.result("").Data.Card.BINMin != "400000" || second.result("").Data.Card.BINMin != "500000" {
		t.Errorf("%+v and %+v", first.result("").Data.Card, second.result("").Data.Card)
	}
	for _, none := range [][]AdditionalCardBrand{nil, {}} {
		if got := packed(&Card{AdditionalCardBrands: none}).result("").Data.Card.AdditionalCardBrands; !reflect.DeepEqual(got, none) {
			t.Errorf("%#v brands became %#v", none, got)
		}
	}
}
