package sandbox

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// The interface's field names of data.card.
const cardFields = `number.length bin_length svc_bin_length bin_min bin_max pan_or_token virtual_card level2 level3
	alm account_updater domestic_only gambling_blocked issuer_currency reloadable
	additional_card_brands.card_brand additional_card_brands.bin_max additional_card_brands.bin_min
	additional_card_brands.card_brand_product additional_card_brands.card_brand_bank_name
	additional_card_brands.ecom_enabled additional_card_brands.billpay_enabled
	card_brand card_segment_type combo_card type funding_source prepaid product.product_id product.product_name
	bank.name bank.phone bank.url bank.clean_name country.alpha2 country.numeric country.name
	authentication.authentication_required authentication.authentication_name
	cost.interchange.regulated cost.interchange.regulated_name cost.interchange.notes
	networkfees correlation_id issuer_supports_tokenization multi_account_access_indicator shared_bin
	flagged_for_delete_remaining_wks`

const capFields = `cap_region_shortname cap_advalorem_amount cap_type_name cap_fixed_amount cap_type_qualifier_currency
	cap_type_qualifier_text cap_type_qualifier_lower cap_type_qualifier_upper`

func documentedFields() []string {
	fields := strings.Fields(cardFields)
	for _, region := range []string{"domestic", "inter", "intra"} {
		for f := range strings.FieldsSeq(capFields) {
			fields = append(fields, "cost.interchange."+region+"."+f)
		}
	}
	slices.Sort(fields)
	return fields
}

// leaves adds the path of every member of v that is not null to paths. The
// contents of networkfees are not documented.
func leaves(paths map[string]any, path string, v any) {
	switch v := v.(type) {
	case nil:
	case map[string]any:
		if path == "networkfees" {
			paths[path] = v
			return
		}
		for name, member := range v {
			leaves(paths, strings.TrimPrefix(path+"."+name, "."), member)
		}
	case []any:
		for _, element := range v {
			leaves(paths, path, element)
		}
	default:
		paths[path] = v
	}
}

type item struct {
	BIN  string `json:"bin"`
	Data *struct {
		Card map[string]any `json:"card"`
	} `json:"data"`
	Error *string `json:"error"`
}

func lookupItems(t *testing.T, e *Engine, body string) []item {
	t.Helper()
	r := memoryDoor(t, e, Bins).lookup(t, body)
	var response struct {
		Cards []item `json:"cards"`
	}
	if err := decode([]byte(r.body), &response); r.err != nil || r.status != 200 || err != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	return response.Cards
}

func TestDataSet(t *testing.T) {
	bins := []string{"411111", "424242", "555555", "510510", "378282", "601111", "305693", "353011", "620000",
		"45717360", "52231903", "42424201", "42424202"}
	var cards []string
	for _, bin := range bins {
		cards = append(cards, `{"card":"`+bin+`"}`)
	}
	items := lookupItems(t, New(), `{"cards":[`+strings.Join(cards, ",")+`]}`)
	if len(items) != len(bins) {
		t.Fatalf("%d items for %d cards", len(items), len(bins))
	}
	want := documentedFields()
	countries := map[string]string{}
	for i, it := range items {
		if it.BIN != bins[i] || it.Data == nil || it.Error != nil {
			t.Fatalf("item for %s: %+v", bins[i], it)
		}
		got := map[string]any{}
		leaves(got, "", it.Data.Card)
		for path := range got {
			if _, found := slices.BinarySearch(want, path); !found {
				t.Errorf("%s: field %s is not documented", it.BIN, path)
			}
		}
		if it.BIN == "45717360" {
			if full := slices.Sorted(maps.Keys(got)); !slices.Equal(full, want) {
				t.Errorf("fields of the full item:\n got %q\nwant %q", full, want)
			}
		}
		low, high := got["bin_min"].(string), got["bin_max"].(string)
		if len(low) != 19 || len(high) != 19 || !strings.HasPrefix(low, it.BIN) || low > high {
			t.Errorf("%s: range %s to %s", it.BIN, low, high)
		}
		countries[it.BIN] = got["country.alpha2"].(string)
	}
	if countries["42424201"] == countries["42424202"] {
		t.Error("the two children of 424242 are in one country")
	}
}

func TestLookupMatching(t *testing.T) {
	e := New()
	items := lookupItems(t, e, `{"cards":[{"card":"4242424242424242"},{"card":"4242420112345678"},{"card":"411111"},
		{"card":"999999"},{"card":"9999991234567890"},{"card":"41111"},{},{"card":"411111"}]}`)
	want := []struct {
		bin   string
		known bool
	}{{"424242", true}, {"42424201", true}, {"411111", true}, {"999999", false}, {"99999912", false}, {"41111", false}, {"", false}, {"411111", true}}
	if len(items) != len(want) {
		t.Fatalf("%d items", len(items))
	}
	for i, w := range want {
		it := items[i]
		if it.BIN != w.bin || (it.Data != nil) != w.known || (it.Error == nil) != w.known {
			t.Errorf("item %d: %+v, want %+v", i, it, w)
		}
		if !w.known && it.Error != nil && *it.Error != "unknown bin" {
			t.Errorf("item %d: error %q", i, *it.Error)
		}
	}
}

func TestSetResult(t *testing.T) {
	e := New()
	e.SetResult("411111", json.RawMessage(`{"bin":"411111","data":null,"error":"suspended"}`))
	e.SetResult("tok_0123456789", json.RawMessage(`{"bin":"tok"}`))
	d := memoryDoor(t, e, Bins)
	r := d.lookup(t, `{"cards":[{"card":"4111111111111111"},{"card":"tok_0123456789"}]}`)
	if want := `{"cards":[{"bin":"411111","data":null,"error":"suspended"},{"bin":"tok"}]}`; r.body != want {
		t.Errorf("got %s, want %s", r.body, want)
	}
	e.SetResult("", json.RawMessage(`null`))
	if r := d.lookup(t, `{"cards":[{"card":"999999"}],"enhanced":true}`); r.body != `{"cards":[null]}` {
		t.Errorf("got %s, want the item for all others", r.body)
	}
}

func TestEnhanced(t *testing.T) {
	e := New()
	plain := lookupItems(t, e, `{"cards":[{"card":"411111"}],"enhanced":false}`)[0].Data.Card
	enhanced := lookupItems(t, e, `{"cards":[{"card":"411111"}],"enhanced":true}`)[0].Data.Card
	if plain["alm"] != nil || enhanced["alm"] != false || enhanced["multi_account_access_indicator"] != "N" {
		t.Errorf("plain %v, enhanced %v", plain["alm"], enhanced["alm"])
	}
	if len(plain) != len(enhanced) {
		t.Error("enhanced changed the fields")
	}
}
