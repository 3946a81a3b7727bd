package bins_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/testkit"
)

// oddItem returns an item beside another one, which must not be harmed, and alone.
func oddItem(t *testing.T, item string) *bins.Result {
	t.Helper()
	both, alone := decoded(t, `{"cards":[`+item+`,{"bin":"411111","data":{"card":{"card_brand":"VISA"}}}]}`), decoded(t, `{"cards":[`+item+`]}`)
	if len(both.Cards) != 2 || len(alone.Cards) != 1 {
		t.Fatalf("%s: %d and %d items", item, len(both.Cards), len(alone.Cards))
	}
	if card, err := both.Cards[1].Card(); err != nil || card.CardBrand != "VISA" || both.Cards[1].Unread != nil {
		t.Errorf("%s: the other item: %v, %v", item, err, both.Cards[1].Unread)
	}
	r := &alone.Cards[0]
	testkit.SameJSON(t, item, testkit.Encoded(t, both.Cards[0]), testkit.Encoded(t, r))
	if string(r.Raw) != item || !slices.Equal(r.Unread, both.Cards[0].Unread) {
		t.Errorf("%s: raw %s, unread %v and %v", item, r.Raw, r.Unread, both.Cards[0].Unread)
	}
	return r
}

// What loses nothing is read. Anything else costs the member, and not the card.
func TestMemberOfAnotherType(t *testing.T) {
	for _, test := range []struct{ member, reads, unread string }{
		{`"country":{"numeric":840}`, `"country":{"numeric":"840"}`, ""},
		{`"card_brand":true`, `"card_brand":"true"`, ""},
		{`"issuer_currency":-1.50E+2`, `"issuer_currency":"-1.50E+2"`, ""},
		{`"bin_max":4571736099999999999000000000000`, `"bin_max":"4571736099999999999000000000000"`, ""},
		{`"pan_or_token":4111111111111111`, `"pan_or_token":"4111111111111111"`, ""},
		{`"bin_length":"8"`, `"bin_length":8`, ""},
		{`"bin_length":8.0`, `"bin_length":8`, ""},
		{`"number":{"length":1.6e1}`, `"number":{"length":16}`, ""},
		{`"prepaid":"true","level2":"false"`, `"prepaid":true,"level2":false`, ""},
		{`"prepaid":"","bin_length":""`, ``, ""},
		{`"networkfees":[1]`, `"networkfees":[1]`, ""},
		{`"cost":{"interchange":{"intra":{"cap_fixed_amount":0.21}}}`, `"cost":{"interchange":{"intra":{"cap_fixed_amount":"0.21"}}}`, ""},
		{`"additional_card_brands":[{"bin_min":4571,"ecom_enabled":"true"}]`, `"additional_card_brands":[{"bin_min":"4571","ecom_enabled":true}]`, ""},

		{`"country":{"numeric":{},"name":"US"}`, `"country":{"name":"US"}`, "country.numeric"},
		{`"bin_length":8.5`, ``, "bin_length"},
		{`"bin_length":9223372036854775808`, ``, "bin_length"},
		{`"bin_length":1e999999999`, ``, "bin_length"},
		{`"bin_length":true`, ``, "bin_length"},
		{`"prepaid":"maybe"`, ``, "prepaid"},
		{`"prepaid":1`, ``, "prepaid"},
		{`"pan_or_token":["4111111111111111"]`, ``, "pan_or_token"},
		{`"bank":"First Bank"`, ``, "bank"},
		{`"number":16`, ``, "number"},
		{`"cost":[]`, ``, "cost"},
		{`"cost":{"interchange":{"notes":[],"inter":true,"intra":{"cap_type_name":{}}}}`, ``, "cost.interchange.notes cost.interchange.inter cost.interchange.intra.cap_type_name"},
		{`"additional_card_brands":{}`, ``, "additional_card_brands"},
		{`"additional_card_brands":[{"ecom_enabled":1,"bin_min":"1"},5,{"ecom_enabled":2}]`, `"additional_card_brands":[{"bin_min":"1"},{},{}]`,
			"additional_card_brands.ecom_enabled additional_card_brands"},
		{`"bank":[],"Bank":{"Name":"B"}`, `"bank":{"name":"B"}`, "bank"},
	} {
		const item = `{"bin":"457173","data":{"card":{%s"type":"Debit"}}}`
		written := func(member string) string { return fmt.Sprintf(item, strings.TrimPrefix(member+",", ",")) }
		r := oddItem(t, written(test.member))
		if _, err := r.Card(); err != nil {
			t.Errorf("%s: %v", test.member, err)
			continue
		}
		var unread []string
		for path := range strings.FieldsSeq(test.unread) {
			unread = append(unread, "data.card."+path)
		}
		if !slices.Equal(r.Unread, unread) || (r.Unread == nil) != (unread == nil) {
			t.Errorf("%s: unread %q, want %q", test.member, r.Unread, unread)
		}
		testkit.SameJSON(t, test.member, testkit.Encoded(t, r), testkit.Encoded(t, decoded(t, `{"cards":[`+written(test.reads)+`]}`).Cards[0]))
	}
}

// A member that cannot be read, or is null, reads as one that is left out, wherever it is.
func TestUnreadMemberIsAsAbsent(t *testing.T) {
	root := testkit.Generic(t, []byte(fullResponse(t)))
	members := 0
	var check func(path string, v any)
	check = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				path := strings.TrimPrefix(path+"."+name, ".")
				members++
				instead := []any{nil}
				if path != "data.card.networkfees" && path != "error" { // these pass any value through
					check(path, member)
					instead = append(instead, oddFor(member)...)
				}
				delete(v, name)
				absent := decoded(t, string(testkit.Encoded(t, root)))
				for _, v[name] = range instead {
					got := decoded(t, string(testkit.Encoded(t, root)))
					testkit.SameJSON(t, path, testkit.Encoded(t, got), testkit.Encoded(t, absent))
					var unread []string
					if v[name] != nil {
						unread = []string{path}
					}
					if got := got.Cards[0].Unread; !slices.Equal(got, unread) || absent.Cards[0].Unread != nil {
						t.Errorf("%s: unread %q", path, got)
					}
				}
				v[name] = member
			}
		case []any:
			for _, element := range v {
				check(path, element)
			}
		}
	}
	if check("", root.(map[string]any)["cards"].([]any)[0]); members < 75 {
		t.Errorf("the full response has %d members", members)
	}
}

// oddFor returns values that cannot be read in place of a member's.
func oddFor(member any) []any {
	object, array := map[string]any{"a": []any{}}, []any{"a"}
	switch member.(type) {
	case map[string]any:
		return []any{array, "maybe", 8.5, true}
	case []any:
		return []any{object, "maybe", 8.5, true}
	case string:
		return []any{object, array}
	case bool:
		return []any{object, array, "maybe", 8.5}
	}
	return []any{object, array, "maybe", 8.5, true}
}

// An item's own members are read in the same way, and a member named error speaks of none as it
// does in the receipt of a refund.
func TestItemMemberOfAnotherType(t *testing.T) {
	const data = `"data":{"card":{"type":"Debit"}}`
	for _, test := range []struct {
		item, bin, message string
		card               bool
		unread             []string
	}{
		{`{"bin":411111,` + data + `}`, "411111", "", true, nil},
		{`{"bin":{},` + data + `}`, "", "", true, []string{"bin"}},
		{`{"error":false,` + data + `}`, "", "", true, nil},
		{`{"error":0,` + data + `}`, "", "", true, nil},
		{`{"error":0.0,` + data + `}`, "", "", true, nil},
		{`{"error":[ ],` + data + `}`, "", "", true, nil},
		{`{"error":{ },` + data + `}`, "", "", true, nil},
		{`{"error":true,` + data + `}`, "", "true", true, nil},
		{`{"error":404}`, "", "404", false, nil},
		{`{"error":{"code":"x", "n":[1]}}`, "", `{"code":"x", "n":[1]}`, false, nil},
		{`{"error":["x"],"data":null}`, "", `["x"]`, false, nil},
		{`{"bin":"1","data":[]}`, "1", "", false, []string{"data"}},
		{`{"bin":"1","data":"x","error":"gone"}`, "1", "gone", false, []string{"data"}},
		{`{"bin":"1","data":{"card":[{}]}}`, "1", "", false, []string{"data.card"}},
	} {
		r := oddItem(t, test.item)
		card, err := r.Card()
		if r.BIN != test.bin || r.Error != test.message || (card != nil) != test.card || !slices.Equal(r.Unread, test.unread) {
			t.Errorf("%s: %q, %q, %v, unread %q", test.item, r.BIN, r.Error, card, r.Unread)
		}
		if (err == nil) != (test.card && test.message == "") || errors.Is(err, bins.ErrBadResponse) {
			t.Errorf("%s: %v", test.item, err)
		}
	}
}

func TestItemThatIsNoObject(t *testing.T) {
	for item, fails := range map[string]bool{"null": false, `"not found"`: true, "[]": true, "4111111111111111": true, "false": true} {
		r := oddItem(t, item)
		if errors.Is(r.Err, bins.ErrBadResponse) != fails || r.BIN+r.Error != "" || r.Data != nil || r.Unread != nil {
			t.Errorf("%s: %v, %+v", item, r.Err, r)
		}
		if _, err := r.Card(); err == nil || errors.Is(err, bins.ErrBadResponse) != fails {
			t.Errorf("%s: %v", item, err)
		}
	}
}

// Members that occur twice are not merged: they may be of two cards.
func TestLastOfRepeatedMembersCounts(t *testing.T) {
	for body, reads := range map[string]string{
		`[{"bin":"1","bin":2}]`:                                                                          `[{"bin":"2"}]`,
		`[{"error":"x","Error":false}]`:                                                                  `[{}]`,
		`[{"data":{"card":{"type":"A"}},"data":{}}]`:                                                     `[{"data":{}}]`,
		`[{"data":{"card":{"type":"A"}},"data":"x"}]`:                                                    `[{}]`,
		`[{"data":{"card":{"type":"A","prepaid":true},"card":{"type":null}}}]`:                           `[{"data":{"card":{}}}]`,
		`[{"data":{"card":{"product":{"product_name":"A"},"product":{"product_id":"1"}}}}]`:              `[{"data":{"card":{"product":{"product_id":"1"}}}}]`,
		`[{"data":{"card":{"additional_card_brands":[{"bin_min":"1"}],"additional_card_brands":[{}]}}}]`: `[{"data":{"card":{"additional_card_brands":[{}]}}}]`,
		`[{"bin":"1"},{"bin":"2"}],"cards":[{"data":{}}]`:                                                `[{"data":{}}]`,
	} {
		testkit.SameJSON(t, body, testkit.Encoded(t, decoded(t, `{"cards":`+body+`}`)), testkit.Encoded(t, decoded(t, `{"cards":`+reads+`}`)))
	}
}

// A card from a cache still says what could not be read. The counters count what was received.
func TestUnreadIsKeptInCaches(t *testing.T) {
	s := &service{answer: func(card string) (map[string]any, bool) {
		return map[string]any{"bin": card, "data": map[string]any{"card": map[string]any{"type": "Debit", "bank": "B", "country": map[string]any{"name": []any{}}}}}, true
	}}
	shared, memory := newSharedCache(), bins.NewMemoryCache(bins.CacheOptions{})
	for i, o := range []bins.BulkOptions{{Memory: memory, Cache: shared}, {Memory: memory}, {Cache: shared}} {
		var progress bins.BulkProgress
		o.Progress = func(p bins.BulkProgress) { progress = p }
		for r, err := range s.client(t).LookupAll(t.Context(), slices.Values([]string{"411111", "411111"}), o) {
			if err != nil {
				t.Fatal(err)
			}
			got := slices.Sorted(slices.Values(r.Result.Unread))
			if !slices.Equal(got, []string{"data.card.bank", "data.card.country.name"}) || r.Reused != (i+r.Index > 0) || r.Result.Data.Card.NetworkFees != nil {
				t.Errorf("lookup %d: unread %q, reused %v, %+v", i, got, r.Reused, r.Result)
			}
			clear(r.Result.Unread) // the caller's own
		}
		if want := max(0, 2-2*i); progress.Unread != want {
			t.Errorf("lookup %d: %d unread members counted, want %d", i, progress.Unread, want)
		}
	}
	l := loader(t, s, bins.LoaderOptions{})
	for range 2 {
		if r, err := l.Load(t.Context(), "411111"); err != nil || len(r.Unread) != 2 || l.Stats().Unread != 2 {
			t.Errorf("loaded %q, %v, stats %+v", r.Unread, err, l.Stats())
		}
	}
	if n := s.requests.Load(); n != 2 {
		t.Errorf("%d requests", n)
	}
}
