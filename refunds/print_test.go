package refunds_test

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
)

// What is printed and logged of each value holds no id but a refund's own, no free text and
// nothing that the service sent.
func TestPrinted(t *testing.T) {
	r := record()
	r.TransactionID = "tx-secret"
	r.AdditionalData = refunds.AdditionalData{OrderID: "order-1", MerchantAccountID: "merchant-secret", Description: "description-secret",
		Metadata: map[string]any{"card": "4111111111111111"}}
	_, receipt, err := submit(t, record(), testkit.Answer(202, "body-secret", "X-Request-Id", "req-7", "Location", "header-secret"))
	if err != nil {
		t.Fatal(err)
	}
	failed := &refunds.Error{Operation: "submit", StatusCode: 429}
	const text = "refund rf-canary, amount 10150 USD"
	for _, test := range []struct {
		v           any
		text, value string // "": it has no LogValue
	}{
		{*r, text, text},
		{refunds.Refund{RefundID: "rf-2"}, "refund rf-2, amount unset (currency unset)", "refund rf-2, amount unset (currency unset)"},
		{r.AdditionalData, "additional data of order order-1", "[order_id=order-1]"},
		{refunds.Item{AccountID: "acct-secret", Refund: r, Options: []refunds.Option{refunds.WithHeader("Idempotency-Key", "key-secret")}, Ref: "ref-secret"}, text, text},
		{refunds.Item{}, "no refund", "no refund"},
		{refunds.Submission{AccountID: "acct-secret", RefundID: "rf-secret", Outcome: refunds.OutcomeAccepted, Receipt: receipt, Ref: "ref-secret"},
			"submission 0: accepted", "[index=0 outcome=accepted attempts=0]"},
		{*receipt, "refund accepted (status 202)", "[status=202 request_id=req-7]"},
		{*failed, failed.Error(), ""},
		{refunds.OutcomeError{Outcome: rejected, RefundID: "rf-secret", Err: failed}, failed.Error() + ": the refund was rejected", ""},
	} {
		testkit.NoLeak(t, test.v, "acct-secret", "body-secret", "description-secret", "key-secret", "merchant-secret", "ref-secret", "rf-secret", "tx-secret", "4111111111111111")
		testkit.NoLeakUnderAnyVerb(t, test.v, "header-secret")
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

// The service may repeat an id or a text of the record as an error code or a request id, as it
// is or encoded. Neither is printed then.
func TestEchoesAreNotPrinted(t *testing.T) {
	r := record()
	own := []string{"rf-canary", "acct-canary", "tenant-canary", "metadata-name", "metadata-value", "12345678901.5"}
	for name, field := range map[string]*string{
		"transaction": &r.TransactionID, "linked": &r.TransactionOrderID, "order": &r.AdditionalData.OrderID, "merchant": &r.AdditionalData.MerchantAccountID,
		"arn": &r.AdditionalData.AcquirerReferenceNumber, "text": &r.AdditionalData.Description,
	} {
		*field = name + "-canary"
		own = append(own, *field)
	}
	r.AdditionalData.Metadata = map[string]any{"metadata-name": map[string]any{"list": []any{"metadata-value", json.Number("12345678901.5")}}}
	submit := func(code, id string) (*refunds.Error, string) {
		var log bytes.Buffer
		mock := testkit.NewMock("POST", testkit.Base+"/tenant-canary/v1/acct-canary/refunds", testkit.Answer(422, `{"code":"`+code+`"}`, "X-Request-Id", id))
		client, err := refunds.NewClient(testkit.Base+"/tenant-canary", refunds.WithHTTPClient(mock.Client()),
			refunds.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Submit(t.Context(), "acct-canary", r)
		e, _ := errors.AsType[*refunds.Error](err)
		return e, err.Error() + log.String()
	}
	for _, id := range own {
		for _, said := range []string{id, "err_" + strings.ToUpper(id) + "_missing", "a" + hex.EncodeToString([]byte("id="+id)),
			"x." + base64.RawURLEncoding.EncodeToString([]byte("key:"+id)) + ".y"} {
			if e, printed := submit(said, said); e.Code != "" || e.RequestID != "" || e.Header().Get("X-Request-Id") != said || strings.Contains(printed, said) {
				t.Errorf("%s as %s: %q, %q: %s", id, said, e.Code, e.RequestID, printed)
			}
		}
	}
	r.SVCCodes.SVCRefundStatus = "amount_too_high" // is no id
	if e, _ := submit("amount_too_high", "req-7"); e.Code != "amount_too_high" || e.RequestID != "req-7" {
		t.Errorf("code %q, request id %q", e.Code, e.RequestID)
	}
}
