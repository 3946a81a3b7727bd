package bins

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// packed is a card as the memory keeps it.
func packed(card *Card) *entry {
	return new(MemoryCache).pack(cacheKey{id: "400000"}, &Result{Data: &Data{Card: card}}, time.Now())
}

// Cards that differ in any field are different entries, unless the field belongs to a single card
// or its range.
func TestEntryTellsEveryFieldApart(t *testing.T) {
	base := packed(&Card{})
	ofOneCard := map[string]bool{"PANOrToken": true, "CorrelationID": true}
	ofOneRange := map[string]bool{"BINMin": true, "BINMax": true}
	for i := range reflect.TypeFor[Card]().NumField() {
		field := reflect.TypeFor[Card]().Field(i)
		eachLeaf(field.Type, func(set func(reflect.Value)) {
			var card Card
			set(reflect.ValueOf(&card).Elem().Field(i))
			e := packed(&card)
			if same := e.card == base.card; same != (ofOneCard[field.Name] || ofOneRange[field.Name]) {
				t.Errorf("%s: changed card taken for the same: %v", field.Name, same)
			}
			if got := e.result("400000").Data.Card; !ofOneCard[field.Name] && !reflect.DeepEqual(got, &card) {
				t.Errorf("%s: %+v is made of %+v", field.Name, got, card)
			}
		})
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

// eachLeaf calls f with a function for each way of setting one leaf of a value.
func eachLeaf(typ reflect.Type, f func(set func(reflect.Value))) {
	switch typ {
	case reflect.TypeFor[Optional[bool]]():
		f(func(v reflect.Value) { v.Set(reflect.ValueOf(Stated(false))) })
		return
	case reflect.TypeFor[Optional[int64]]():
		f(func(v reflect.Value) { v.Set(reflect.ValueOf(Stated(int64(0)))) })
		return
	case reflect.TypeFor[Identifier]():
		f(func(v reflect.Value) { v.Set(reflect.ValueOf(NewIdentifier("x"))) })
		return
	case reflect.TypeFor[json.RawMessage]():
		f(func(v reflect.Value) { v.Set(reflect.ValueOf(json.RawMessage("{}"))) })
		return
	}
	switch typ.Kind() {
	case reflect.String:
		f(func(v reflect.Value) { v.SetString("x") })
	case reflect.Slice:
		eachLeaf(typ.Elem(), func(set func(reflect.Value)) {
			f(func(v reflect.Value) {
				v.Set(reflect.MakeSlice(typ, 1, 1))
				set(v.Index(0))
			})
		})
	case reflect.Struct:
		for i := range typ.NumField() {
			eachLeaf(typ.Field(i).Type, func(set func(reflect.Value)) {
				f(func(v reflect.Value) { set(v.Field(i)) })
			})
		}
	}
}
