package bins

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"
	"weak"
)

// encodingJSON decodes a response as encoding/json does.
func encodingJSON(body []byte) (*LookupResponse, error) {
	resp := new(LookupResponse)
	var raw struct{ Cards []json.RawMessage }
	if err := errors.Join(json.Unmarshal(body, resp), json.Unmarshal(body, &raw)); err != nil {
		return nil, err
	}
	for i := range resp.Cards {
		r := &resp.Cards[i]
		r.Raw = raw.Cards[i]
		if r.hasCard() && string(r.Data.Card.NetworkFees) == "null" {
			r.Data.Card.NetworkFees = nil
		}
	}
	return resp, nil
}

// agrees reads a response. It fails if encoding/json finds that something else is JSON, or reads
// documented types in another way.
func agrees(t *testing.T, body []byte) *LookupResponse {
	t.Helper()
	got, err := decode(slices.Clip(body), true)
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	want, wantErr := encodingJSON(body)
	isObject := json.Valid(body) && bytes.HasPrefix(bytes.TrimSpace(body), []byte("{"))
	refused := err != nil && (strings.Contains(err.Error(), "too many members") || strings.Contains(err.Error(), "cards has"))
	switch {
	case err == nil && !isObject, isObject && err != nil && !refused:
		t.Fatalf("%q\nis decoded as %#v, %v, and an object: %v", body, got, err, isObject)
	case err == nil && wantErr == nil && !repeatsName(json.NewDecoder(bytes.NewReader(body))) && !reflect.DeepEqual(got, want):
		t.Fatalf("%q\nis decoded as %#v\nand by encoding/json as %#v", body, got, want)
	}
	return got
}

// repeatsName reports whether an object of the next value has two names that differ in case at
// most.
func repeatsName(d *json.Decoder) (repeats bool) {
	opening, err := d.Token()
	if opening != json.Delim('{') && opening != json.Delim('[') {
		return false
	}
	var names []string
	for err == nil && d.More() {
		if opening == json.Delim('{') {
			var name json.Token
			if name, err = d.Token(); err != nil {
				break
			}
			isName := func(other string) bool { return strings.EqualFold(other, name.(string)) }
			repeats = repeats || slices.ContainsFunc(names, isName)
			names = append(names, name.(string))
		}
		repeats = repeatsName(d) || repeats
	}
	d.Token()
	return repeats
}

func FuzzLookupResponse(f *testing.F) {
	full, err := os.ReadFile("testdata/response.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		string(full),
		`{"cards":[{"bin":"45717360","data":{"card":{"number":{"length":"16"},"pan_or_token":"pan","level2":true,"type":"Debit",
			"additional_card_brands":[{"ecom_enabled":false}],"cost":{"interchange":{"inter":{"cap_fixed_amount":"0"}}}}}}]}`,
		`{}`, `{"cards":null}`, `{"cards":[null,{}]}`, `{"cards":[{"data":{"card":{"bin_length":"8","prepaid":null}}}]}`,
		`{"cards":[{"bin":"1","error":"x"}],"cards":[{"data":{}}]}`, `{"CARDS":[{"BIN":"1"}]}`, `{"cards":[{"error":"\ud800"}]}`,
		`{"cards":[{"data":{"card":{"networkfees":{"a":[1e99]}}}}]}`, "\ufeff{}", `[]`, `{"cards":[`, `{"cards":{}}`,
		`{"cards":[{"error":"\/\u00e9\n\b\ud83d\ude00\u0000"},{"Error":"x","\u0065rror":"y"},{"\u017fince":1,"unknown":[true,{"a":-0.5E+7}]}]}`,
		`{"cards":[{"data":{"card":{"bin_length":007,"svc_bin_length":"+7","prepaid":""}}}]} `, "{\"cards\":[{\"bin\":\"\xff\"}]}",
		`{"cards":[{"data":{"card":{"prepaid":true,"prepaid":null,"bin_length":-1,"number":{"length":1.0}}}}]}`, "{\"cards\" :\t[ ]\r\n}x",
		`{"cards":["x",{"bin":411111,"error":{"code":1},"data":[]},{"error":[ ],"data":{"card":{"bin_length":"8.0e0","number":16,"prepaid":"false",
			"country":{"numeric":840},"additional_card_brands":[1,{"bin_min":{}}],"cost":{"interchange":{"intra":{"cap_type_name":[]}}}}}}]}`,
		` { "cards" : [ null , { } ] , "page" : [ { "of" : -1.5e+3 } ] } `, `{"card\u0073":[{}]}`, "{\"card\u017f\":[{\"\u0062in\":\"1\"}]}",
		`{"cards":[{"data":{"card":{"additional_card_brands":[null,{}],"bin_length":-9223372036854775808}}}]}`, `{"cards":[],}`, `{"a":01}`, "{}\x00", `{"a":"\`, `{"page":{"a":"}]","b":"\""}}`, `{"cards":[{"data":{"card":{"networkfees":null}}}]}`,
		`{"cards":[{"data":{"card":{"prepaid":tru}}}]}`, "{\"a\":\"\x01\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		resp := agrees(t, body)
		if resp == nil {
			return
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
	})
}

func TestKeptItemDoesNotKeepTheAnswer(t *testing.T) {
	body, err := os.ReadFile("testdata/response.json")
	if err != nil {
		t.Fatal(err)
	}
	item := body[bytes.IndexByte(body, '[')+1 : bytes.LastIndexByte(body, ']')]
	body = slices.Concat([]byte(`{"cards":[`), item, []byte(","), item, []byte("]}"))
	answer := weak.Make(&body[0])
	resp, err := decode(body, true)
	if err != nil {
		t.Fatal(err)
	}
	other, text := weak.Make(resp.Cards[1].Data.Card), weak.Make(unsafe.StringData(resp.Cards[1].Data.Card.Bank.URL))
	kept := resp.Cards[0]
	resp, body, item = nil, nil, nil
	runtime.GC()
	if answer.Value() != nil || other.Value() != nil || text.Value() != nil {
		t.Error("an item keeps the answer, or another item, in memory")
	}
	runtime.KeepAlive(kept)
}
