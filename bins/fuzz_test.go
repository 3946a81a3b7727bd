package bins

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

func FuzzLookupResponse(f *testing.F) {
	for _, seed := range []string{
		`{"cards":[{"bin":"45717360","data":{"card":{"number":{"length":"16"},"pan_or_token":"pan","level2":true,"type":"Debit",
			"additional_card_brands":[{"ecom_enabled":false}],"cost":{"interchange":{"inter":{"cap_fixed_amount":"0"}}}}}}]}`,
		`{}`, `{"cards":null}`, `{"cards":[null,{}]}`, `{"cards":[{"data":{"card":{"bin_length":"8","prepaid":null}}}]}`,
		`{"cards":[{"bin":"1","error":"x"}],"cards":[{"data":{}}]}`, `{"CARDS":[{"BIN":"1"}]}`, `{"cards":[{"error":"\ud800"}]}`,
		`{"cards":[{"data":{"card":{"networkfees":{"a":[1e99]}}}}]}`, "\ufeff{}", `[]`, `{"cards":[`, `{"cards":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		resp, err := decode(body, true)
		if err != nil {
			return
		}
		if !json.Valid(body) {
			t.Fatalf("decoded what is not JSON: %q", body)
		}
		for i := range resp.Cards {
			result := &resp.Cards[i]
			if card, err := result.Card(); card == nil && err == nil {
				t.Error("an item is neither a card nor an error")
			}
			if !json.Valid(result.Raw) {
				t.Errorf("raw item %q", result.Raw)
			}
			_ = result.LogValue()
		}
		// An item unfolds to more members than it came with.
		if len(resp.Cards) > MaxCards {
			return
		}
		first, again := reencode(t, resp)
		second, _ := reencode(t, again)
		if !bytes.Equal(first, second) {
			t.Errorf("encoded as %s, then as %s", first, second)
		}
		for _, r := range []*LookupResponse{resp, again} {
			for i := range r.Cards {
				r.Cards[i].Raw = nil
				if card, _ := r.Cards[i].Card(); card != nil {
					card.NetworkFees = nil // only its spacing and escapes can differ, or absent and null
				}
			}
		}
		if !reflect.DeepEqual(resp, again) {
			t.Errorf("decoded as %#v, then as %#v", resp, again)
		}
	})
}

func reencode(t *testing.T, resp *LookupResponse) ([]byte, *LookupResponse) {
	t.Helper()
	text, err := json.Marshal(resp)
	if err != nil {
		t.Fatal(err)
	}
	again, err := decode(text, false)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return text, again
}
