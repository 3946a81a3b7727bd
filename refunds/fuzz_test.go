package refunds_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
)

// A record that was read from JSON is sent as it was read.
func FuzzRefundRecord(f *testing.F) {
	for _, seed := range []string{
		`{"refund_id":"rf_1","amount":10150,"currency":"USD","additional_data":{"metadata":{"a":[1e400,{"b":null}]}}}`,
		`{"amount":9223372036854775807}`, `{"amount":1e3}`, `{"amount":null,"svc_codes":null}`, `{"REFUND_ID":"a","refund_id":"b"}`,
		`{"payment_method_details":{"card":{"attributes":{"bin":"004571"}}}}`, `{"additional_data":{"metadata":{}}}`, `{"created":"\ud800"}`, `[]`,
	} {
		f.Add(seed)
	}
	read := func(text string) (r refunds.Refund, err error) {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		return r, decoder.Decode(&r)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := read(text)
		if err != nil {
			t.Skip("no record")
		}
		again, err := read(string(testkit.Encoded(t, first)))
		if err != nil || !reflect.DeepEqual(first, again) {
			t.Errorf("%s is sent as %s, %v", text, testkit.Encoded(t, first), err)
		}
	})
}
