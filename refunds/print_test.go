package refunds_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
)

// What is printed and logged of each value. internal/proof/conformance/secrets shows that it
// holds no secret.
func TestPrinted(t *testing.T) {
	r := record()
	r.AdditionalData.OrderID = "order-1"
	_, receipt, err := submit(t, record(), testkit.Answer(202, "", "X-Request-Id", "req-7"))
	if err != nil {
		t.Fatal(err)
	}
	doubt := refunds.Error{Operation: "submit", StatusCode: 502}
	const text = "refund rf-canary, amount 10150 USD"
	for _, test := range []struct {
		v           any
		text, value string // "": it has no LogValue
	}{
		{*r, text, text},
		{refunds.Refund{RefundID: "rf-2"}, "refund rf-2, amount unset (currency unset)", "refund rf-2, amount unset (currency unset)"},
		{r.AdditionalData, "additional data of order order-1", "[order_id=order-1]"},
		{refunds.Item{AccountID: "acct", Refund: r}, text, text},
		{refunds.Item{}, "no refund", "no refund"},
		{refunds.Submission{RefundID: "rf", Outcome: accepted, Receipt: receipt, Ref: "ref-secret"}, "submission 0: accepted", "[index=0 outcome=accepted attempts=0]"},
		{*receipt, "refund accepted (status 202)", "[status=202 request_id=req-7]"},
		{doubt, doubt.Error(), ""},
		{refunds.Error{Operation: "submit", StatusCode: 400, Outcome: rejected}, "refunds: submit (status 400 Bad Request): the refund was rejected", ""},
	} {
		testkit.NoLeak(t, test.v, "ref-secret")
		if got := fmt.Sprintf("%+v", test.v); got != test.text {
			t.Errorf("%T is printed as %s", test.v, got)
		}
		if logged, ok := test.v.(slog.LogValuer); ok && logged.LogValue().String() != test.value || !ok && test.value != "" {
			t.Errorf("%T is logged as %s", test.v, slog.AnyValue(test.v).Resolve())
		}
		// slog's JSON handler calls no LogValue within a list.
		if _, ok := test.v.(encoding.TextMarshaler); ok && string(testkit.Encoded(t, []any{test.v})) != fmt.Sprintf("[%q]", test.text) {
			t.Errorf("%T is %s as JSON", test.v, testkit.Encoded(t, test.v))
		}
	}
}

// The service may repeat an id or a text of the record as an error code or a request id.
// Neither is printed then.
func TestEchoesAreNotPrinted(t *testing.T) {
	r := record()
	own := []string{"rf-canary", "acct-1", "metadata-name", "metadata-value", "12345678901.5"}
	for name, field := range map[string]*string{
		"transaction": &r.TransactionID, "linked": &r.TransactionOrderID, "order": &r.AdditionalData.OrderID, "merchant": &r.AdditionalData.MerchantAccountID,
		"arn": &r.AdditionalData.AcquirerReferenceNumber, "text": &r.AdditionalData.Description,
	} {
		*field = name + "-canary"
		own = append(own, *field)
	}
	r.AdditionalData.Metadata = map[string]any{"metadata-name": map[string]any{"list": []any{"metadata-value", json.Number("12345678901.5")}}}
	r.SVCCodes.SVCRefundStatus = "amount_too_high" // is no id
	for _, said := range append(own, "amount_too_high") {
		_, receipt, err := submit(t, r, testkit.Answer(422, `{"code":"`+said+`"}`, "X-Request-Id", said))
		e := failed(t, receipt, err)
		want := ""
		if said == r.SVCCodes.SVCRefundStatus {
			want = said
		}
		if e.Code != want || e.RequestID != want || strings.Contains(err.Error(), said) != (want != "") || e.Header().Get("X-Request-Id") != said {
			t.Errorf("%s: code %q, request id %q: %v", said, e.Code, e.RequestID, err)
		}
	}
}
