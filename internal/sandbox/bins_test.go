package sandbox

import (
	"encoding/json"
	"strings"
	"testing"
)

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
	if err := json.Unmarshal([]byte(r.body), &response); r.err != nil || r.status != 200 || err != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	return response.Cards
}

// TestDataSet compares each built-in card with the OpenAPI document.
func TestDataSet(t *testing.T) {
	for bin := range parseCards() {
		r := memoryDoor(t, New(), Bins).lookup(t, `{"cards":[{"card":"`+bin+`"}]}`)
		_, findings := check(schemas()["LookupResponse"], []byte(r.body))
		for _, f := range findings {
			if !strings.Contains(f.Problem, "is null") {
				t.Errorf("%s: %v", bin, f)
			}
		}
		it := lookupItems(t, New(), `{"cards":[{"card":"`+bin+`"}]}`)[0]
		if it.BIN != bin || it.Data == nil || it.Error != nil {
			t.Errorf("item for %s: %+v", bin, it)
		}
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
	e.SetLookup(func(card string) json.RawMessage {
		return map[string]json.RawMessage{"411111": json.RawMessage(`{"bin":"first"}`)}[card]
	})
	if r := d.lookup(t, `{"cards":[{"card":"411111"},{"card":"tok_0123456789"}]}`); r.body != `{"cards":[{"bin":"first"},{"bin":"tok"}]}` {
		t.Errorf("got %s, want the function's item first", r.body)
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
