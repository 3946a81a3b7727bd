package sandbox

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestContract checks why a body is refused, and which members are told to be unknown.
func TestContract(t *testing.T) {
	cards := func(n int, card string) string {
		return `{"cards":[` + strings.TrimSuffix(strings.Repeat(card+",", n), ",") + `]}`
	}
	for _, tc := range []struct {
		area          Area
		body, refused string // "": accepted
		unknown       []string
	}{
		{Refunds, `{}`, "", nil},
		{Refunds, `{"refund_id":"","amount":-12345678901234567890,"additional_data":{"metadata":{"a":[1,null]}}}`, "", nil},
		{Refunds, `{"amount":"x"}`, "amount is a string where the interface has an integer", nil},
		{Refunds, `{"amount":10.0}`, "amount is a decimal number where the interface has an integer", nil},
		{Refunds, `{"\u0061mount":1e3}`, "amount is a decimal number where the interface has an integer", nil},
		{Refunds, `{"refund_id":5}`, "refund_id is a number where the interface has a string", nil},
		{Refunds, `{"refund_id":null}`, "refund_id is null where the interface has a string", nil},
		{Refunds, `{"additional_data":{"metadata":[1]}}`, "additional_data.metadata is an array where the interface has an object", nil},
		{Refunds, `{"payment_method_details":{"card":true}} `, "payment_method_details.card is a boolean where the interface has an object", nil},
		{Refunds, `[]`, "the body is an array where the interface has an object", nil},
		{Refunds, `{`, "the body is not JSON", nil},
		{Refunds, `{} {}`, "the body is not JSON", nil},
		{Refunds, `{"refundId":"r","AMOUNT":1,"metadata":{"a":{}},"additional_data":{"metadata":{"free":1},"orderId":2}}`, "",
			[]string{"AMOUNT", "additional_data.orderId", "metadata", "refundId"}},
		{Refunds, `{"a":1,"amount":"x"}`, "amount is a string where the interface has an integer", []string{"a"}},
		{Bins, `{"cards":[{}],"enhanced":false}`, "", nil},
		{Bins, `{"cards":[{"CARD":"411111"}]}`, "", []string{"cards[0].CARD"}},
		{Bins, `{}`, "cards is missing", nil},
		{Bins, `{"cards":[{"card":"1"},{"card":1}]}`, "cards[1].card is a number where the interface has a string", nil},
		{Bins, cards(50, `{"card":"1"}`), "", nil},
		{Bins, cards(0, ""), "cards has 0 elements where the interface has 1 to 50", nil},
		{Bins, cards(51, `{"a":1}`), "cards has 51 elements where the interface has 1 to 50", nil},
	} {
		refused := ""
		var unknown []string
		findings := CheckBody(tc.area, []byte(tc.body))
		for _, f := range findings {
			if f.Refused {
				refused = f.String()
			} else {
				unknown = append(unknown, f.Path)
			}
		}
		if len(findings) > maxFindings {
			t.Errorf("%s: %d findings", tc.body, len(findings))
		}
		if refused != tc.refused || tc.unknown != nil && !slices.Equal(unknown, tc.unknown) {
			t.Errorf("%s: refused %q, unknown %q", tc.body, refused, unknown)
		}
		e := New()
		r := memoryDoor(t, e, tc.area).post(t, tc.area, tc.body)
		var got struct{ Error apiError }
		json.Unmarshal([]byte(r.body), &got)
		path := ""
		if tc.refused != "" && !strings.HasPrefix(tc.refused, "the body ") {
			path, _, _ = strings.Cut(tc.refused, " ")
		}
		if (r.status == 400) != (tc.refused != "") || got.Error.Message != tc.refused || tc.refused != "" && got.Error.Details["path"] != path {
			t.Errorf("%s: %+v", tc.body, r)
		}
	}
}
