package refunds_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
)

func withMetadata(m map[string]any) *refunds.Refund {
	r := record()
	r.AdditionalData.Metadata = m
	return r
}

// isRefused checks that a refusal proves that nothing was sent, and quotes
// nothing.
func isRefused(t *testing.T, name string, mock *testkit.Mock, receipt *refunds.Receipt, err error) {
	t.Helper()
	o, e := outcome(t, receipt, err)
	if !errors.Is(err, refunds.ErrNotSent) || !errors.Is(err, refunds.ErrInvalidArgument) || o.Outcome != refunds.OutcomeNotSent {
		t.Errorf("%s: %v", name, err)
	}
	if len(mock.Requests()) != 0 || o.Attempts != 0 || e.StatusCode != 0 || o.Evidence != (refunds.Evidence{}) {
		t.Errorf("%s: %d requests, evidence %+v", name, len(mock.Requests()), o.Evidence)
	}
	testkit.NoLeak(t, err, "canary")
}

func TestRecordThatCannotTravelIsNotSent(t *testing.T) {
	cyclic := map[string]any{"canary": 1}
	cyclic["self"] = []any{cyclic}
	loop := []any{nil}
	loop[0] = loop
	ring, own := new(linked), map[string]any{}
	ring.next, own["self"] = ring, own
	for name, r := range map[string]*refunds.Refund{
		"no record":              nil,
		"no id":                  {Currency: "USD"},
		"a function":             withMetadata(map[string]any{"canary": func() {}}),
		"a channel":              withMetadata(map[string]any{"canary": make(chan int)}),
		"not a number":           withMetadata(map[string]any{"canary": math.NaN()}),
		"infinity, deep":         withMetadata(map[string]any{"a": []any{map[string]any{"canary": math.Inf(1)}}}),
		"no JSON number":         withMetadata(map[string]any{"canary": json.Number("12canary")}),
		"no raw JSON":            withMetadata(map[string]any{"canary": json.RawMessage(`{"canary`)}),
		"a marshaler that fails": withMetadata(map[string]any{"canary": failing{}}),
		"a cycle":                withMetadata(cyclic),
		"a cycle of lists":       withMetadata(map[string]any{"canary": loop}),
		"a hidden cycle":         withMetadata(map[string]any{"canary": ring}),
		"a hidden list":          withMetadata(map[string]any{"canary": linked{value: loop}}),
		"a hidden map":           withMetadata(map[string]any{"canary": linked{value: own}}),
		"broken id":              {RefundID: "canary\xff"},
		"broken currency":        {RefundID: "canary", Currency: "\xc3\x28"},
		"broken deep string": {RefundID: "canary", PaymentMethodDetails: refunds.PaymentMethodDetails{
			Card: refunds.PaymentMethodCard{Attributes: refunds.CardAttributes{IssuerBank: "canary\xed\xa0\x80"}}}},
		"broken description":       {RefundID: "canary", AdditionalData: refunds.AdditionalData{Description: "canary\x80"}},
		"broken metadata key":      withMetadata(map[string]any{"canary\xff": 1}),
		"broken metadata value":    withMetadata(map[string]any{"canary": "\xff"}),
		"broken metadata, deep":    withMetadata(map[string]any{"canary": []any{map[string]string{"x": "\xff"}}}),
		"broken metadata, pointer": withMetadata(map[string]any{"canary": new("\xff")}),
		"broken metadata, struct":  withMetadata(map[string]any{"canary": struct{ Field [1]string }{[1]string{"\xff"}}}),
		"broken metadata, raw":     withMetadata(map[string]any{"canary": json.RawMessage("\"\xff\"")}),
	} {
		mock := newMock()
		receipt, err := newClient(t, mock).Submit(t.Context(), "acct-1", r)
		isRefused(t, name, mock, receipt, err)
	}
	receipt, err := (*refunds.Client)(nil).Submit(t.Context(), "acct-1", record())
	isRefused(t, "no client", newMock(), receipt, err)
	if o, _ := outcome(t, receipt, err); o.RefundID != "rf-canary" {
		t.Errorf("%q was not sent", o.RefundID)
	}
}

// linked hides from encoding/json that it contains itself.
type linked struct {
	next  *linked
	value any
}

func (linked) MarshalJSON() ([]byte, error) { return []byte(`"\ufffd"`), nil }

type failing struct{}

func (failing) MarshalJSON() ([]byte, error) { return nil, errors.New("canary") }
