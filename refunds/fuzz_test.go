package refunds_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/carddata/carddata-go/internal/testkit"
	"github.com/carddata/carddata-go/refunds"
)

// Whatever a record holds, its JSON holds, and no more.
func FuzzRefundRoundTrip(f *testing.F) {
	f.Add("rf_1", int64(10150), uint8(1), "USD", "45717360", "two “shoes” <&>", "amount_too_high")
	f.Add("", int64(0), uint8(3), "", "", "\x00\u2028", "05")
	f.Add("rf_2", int64(-1), uint8(0), "JPY", "004571", "a", "")
	f.Fuzz(func(t *testing.T, id string, amount int64, set uint8, currency, bin, text, code string) {
		for _, s := range []string{id, currency, bin, text, code} {
			if !utf8.ValidString(s) {
				t.Skip("refused by Submit")
			}
		}
		want := refunds.Refund{
			RefundID: id, Currency: currency, Created: text, TransactionID: code, TransactionOrderID: id,
			PaymentMethodDetails: refunds.PaymentMethodDetails{
				PaymentMethodType: code,
				Card: refunds.PaymentMethodCard{
					Attributes: refunds.CardAttributes{Network: text, Type: code, BIN: bin, IssuerBank: text, IssuerCountry: currency}},
			},
			RefundResponse: refunds.RefundResponse{Status: code, ProcessorResponseCode: bin, Reason: text},
			AdditionalData: refunds.AdditionalData{MerchantAccountID: id, OrderID: bin, Description: text, AcquirerReferenceNumber: bin},
			SVCCodes:       refunds.SVCCodes{SVCRefundStatus: code},
		}
		if set&1 != 0 {
			want.Amount = &amount
		}
		if set&2 != 0 {
			want.AdditionalData.Metadata = map[string]any{}
		}
		if set&4 != 0 {
			want.AdditionalData.Metadata = map[string]any{
				text: code, "list": []any{nil, true, json.Number("12345678901234567890"), map[string]any{code: text}},
			}
		}
		encoded := testkit.Encoded(t, &want)
		var got refunds.Refund
		decoder := json.NewDecoder(strings.NewReader(string(encoded)))
		decoder.UseNumber()
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s comes back as %s, %v", encoded, testkit.Encoded(t, got), err)
		}
	})
}
