package refunds_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
)

// An account id is one segment of the path, whatever it holds.
func TestSubmitOnTheWire(t *testing.T) {
	const url = "https://service.example/v1/a%2Fb%20c%3Fd%23e%252F/refunds"
	mock := testkit.NewMock("POST", url, testkit.Answer(201, ""))
	_, err := newClient(t, mock).Submit(t.Context(), "a/b c?d#e%2F", record())
	got := mock.Requests()
	if err != nil || len(got) != 1 || got[0].URL != url {
		t.Fatalf("sent %+v, %v", got, err)
	}
	if got[0].Body != `{"refund_id":"rf-canary","amount":10150,"currency":"USD"}` {
		t.Errorf("sent %s", got[0].Body)
	}
	header := got[0].Header
	// Neither Authorization nor Idempotency-Key is documented.
	if names := slices.Sorted(maps.Keys(header)); !slices.Equal(names, []string{"Accept", "Accept-Encoding", "Content-Type", "User-Agent"}) {
		t.Errorf("sent the headers %q", names)
	}
	if header.Get("Content-Type") != "application/json" || header.Get("Accept") != "application/json" ||
		header.Get("Accept-Encoding") != "identity" || !strings.HasPrefix(header.Get("User-Agent"), "carddata-go/") {
		t.Errorf("sent the header %v", header)
	}
}

func TestFullRecordOnTheWire(t *testing.T) {
	text, err := os.ReadFile("testdata/refund.json")
	if err != nil {
		t.Fatal(err)
	}
	var r refunds.Refund
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&r); err != nil {
		t.Fatal(err)
	}
	for _, path := range testkit.Unset(r) {
		t.Errorf("%s has no value", path)
	}
	mock, _, err := submit(t, &r, testkit.Answer(200, ""))
	if err != nil {
		t.Fatal(err)
	}
	testkit.SameJSON(t, "the record sent", []byte(mock.Requests()[0].Body), text)
}

func TestWhatIsUnsetIsLeftOut(t *testing.T) {
	metadata := func(m map[string]any) refunds.Refund {
		return refunds.Refund{RefundID: "1", AdditionalData: refunds.AdditionalData{Metadata: m}}
	}
	tests := map[string]struct {
		record refunds.Refund
		body   string
	}{
		"nothing but the id": {refunds.Refund{RefundID: "1"}, `{"refund_id":"1"}`},
		"amount zero":        {refunds.Refund{RefundID: "1", Amount: new(int64)}, `{"refund_id":"1","amount":0}`},
		"no metadata beside other data": {refunds.Refund{RefundID: "1", AdditionalData: refunds.AdditionalData{OrderID: "2"}},
			`{"refund_id":"1","additional_data":{"order_id":"2"}}`},
		"empty metadata":        {metadata(map[string]any{}), `{"refund_id":"1","additional_data":{"metadata":{}}}`},
		"replacement character": {metadata(map[string]any{"\ufffd": "\ufffd", "a": []any{nil, new("b"), true}}), `{"refund_id":"1","additional_data":{"metadata":{"a":[null,"b",true],"�":"�"}}}`},
		"exact numbers":         {metadata(map[string]any{"n": json.Number("12345678901234567890.10")}), `{"refund_id":"1","additional_data":{"metadata":{"n":12345678901234567890.10}}}`},
	}
	for name, test := range tests {
		mock, _, err := submit(t, &test.record, testkit.Answer(200, ""))
		if err != nil || mock.Requests()[0].Body != test.body {
			t.Errorf("%s: sent %v, %v", name, mock.Requests(), err)
		}
	}
}
