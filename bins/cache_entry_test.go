package bins

import (
	"encoding/json"
	"reflect"
	"testing"
)

func newTemplate(card *Card) *template {
	return templateOf(card, func(templateKey) *template { return nil })
}

// TestTemplateTellsEveryFieldApart changes each field of a card in turn: but for
// those that belong to one card or range, none may be forgotten.
func TestTemplateTellsEveryFieldApart(t *testing.T) {
	base := newTemplate(&Card{}).key
	own := map[string]bool{"BINMin": true, "BINMax": true, "PANOrToken": true, "CorrelationID": true}
	for i := range reflect.TypeFor[Card]().NumField() {
		field := reflect.TypeFor[Card]().Field(i)
		eachLeaf(field.Type, func(set func(reflect.Value)) {
			var card Card
			set(reflect.ValueOf(&card).Elem().Field(i))
			if same := newTemplate(&card).key == base; same != own[field.Name] {
				t.Errorf("%s: changed card taken for the same: %v", field.Name, same)
			}
		})
	}
}

// TestTemplateServesAnyRange: the bounds of a card's range are not a template's,
// and neither are those of its additional brands, where they are the same.
func TestTemplateServesAnyRange(t *testing.T) {
	card := func(low, high string) *Card {
		return &Card{BINMin: low, BINMax: high, AdditionalCardBrands: []AdditionalCardBrand{
			{CardBrand: "own", BINMin: low, BINMax: high}, {CardBrand: "other", BINMin: "1", BINMax: high}, {},
		}}
	}
	first, second := card("400000", "400009"), card("500000", "500009")
	template := newTemplate(first)
	if template.key != newTemplate(second).key {
		t.Error("cards of two ranges have no template in common")
	}
	var got Card
	if template.fill(&got, "500000", "500009"); !reflect.DeepEqual(&got, second) {
		t.Errorf("the template makes %+v, not %+v", got, second)
	}
	if !reflect.DeepEqual(first, card("400000", "400009")) {
		t.Error("making a template changed the card")
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

func BenchmarkNewTemplate(b *testing.B) {
	card := &Card{CardBrand: "brand", Bank: Bank{Name: "issuer"}}
	for b.Loop() {
		newTemplate(card)
	}
}
