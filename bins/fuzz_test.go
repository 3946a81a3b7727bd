package bins

import (
	"encoding/json"
	"testing"
)

func FuzzLookupResponse(f *testing.F) {
	for _, seed := range []string{
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
