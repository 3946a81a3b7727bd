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
	e := failed(t, receipt, err)
	if !errors.Is(err, refunds.ErrNotSent) || !errors.Is(err, refunds.ErrInvalidArgument) || e.Outcome != refunds.OutcomeNotSent {
		t.Errorf("%s: %v", name, err)
	}
	if len(mock.Requests()) != 0 || e.Attempts != 0 || e.StatusCode != 0 || e.Evidence != (refunds.Evidence{}) {
		t.Errorf("%s: %d requests, evidence %+v", name, len(mock.Requests()), e.Evidence)
	}
	testkit.NoLeak(t, err, "canary")
}

func TestRecordThatCannotTravelIsNotSent(t *testing.T) {
	cyclic := map[string]any{"canary": 1}
	cyclic["self"] = []any{cyclic}
	ring := new(linked)
	ring.next = ring
	for name, r := range map[string]*refunds.Refund{
		"no record":      nil,
		"no id":          {Currency: "USD"},
		"a function":     withMetadata(map[string]any{"canary": func() {}}),
		"infinity, deep": withMetadata(map[string]any{"a": []any{map[string]any{"canary": math.Inf(1)}}}),
		"a cycle":        withMetadata(cyclic),
		"a hidden cycle": withMetadata(map[string]any{"canary": ring}),
		"broken id":      {RefundID: "canary\xff"},
		"broken deep string": {RefundID: "canary", PaymentMethodDetails: refunds.PaymentMethodDetails{
			Card: refunds.PaymentMethodCard{Attributes: refunds.CardAttributes{IssuerBank: "canary\xed\xa0\x80"}}}},
		"broken metadata key":      withMetadata(map[string]any{"canary\xff": 1}),
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
}

// linked hides from encoding/json that it contains itself.
type linked struct{ next *linked }

func (linked) MarshalJSON() ([]byte, error) { return []byte(`"\ufffd"`), nil }
