package sandbox

import (
	"net/http"
	"testing"
)

func TestRefundsAreKept(t *testing.T) {
	e := New()
	d := memoryDoor(t, e, Refunds)
	d.do(newRequest(t, http.MethodPost, d.base+"/v1/a%2Fb/refunds", `{"refund_id":"r-1", "amount":1}`))
	d.do(newRequest(t, http.MethodPost, d.base+"/v1/%2E%2E/refunds", `{"refund_id":"r-1"}`))
	d.do(newRequest(t, http.MethodPost, d.base+"/v1/c/refunds", `{}`))
	got := e.Refunds()
	want := []struct{ account, id, body string }{
		{"a/b", "r-1", `{"refund_id":"r-1", "amount":1}`},
		{"..", "r-1", `{"refund_id":"r-1"}`},
		{"c", "", `{}`},
	}
	if len(got) != len(want) {
		t.Fatalf("%d refunds kept, want %d", len(got), len(want))
	}
	for i, w := range want {
		if g := got[i]; g.AccountID != w.account || g.RefundID != w.id || string(g.Body) != w.body || g.Time.IsZero() {
			t.Errorf("refund %d: %+v, want %+v", i, g, w)
		}
	}
	got[0].Body[0] = 'x'
	if e.Refunds()[0].Body[0] != '{' || e.Requests(Refunds)[0].Body[0] != '{' {
		t.Error("the record changed with the copy")
	}
}

func TestSetRefundResponse(t *testing.T) {
	for _, tc := range []struct {
		status            int
		contentType, body string
		kept              int
	}{
		{201, "text/plain", "created", 1},
		{202, "", "", 1},
		{204, "", "", 1},
		{422, "application/json", `{"message":"no"}`, 0},
	} {
		e := New()
		e.SetRefundResponse(tc.status, tc.contentType, tc.body)
		r := memoryDoor(t, e, Refunds).refund(t, `{}`)
		if r.err != nil || r.status != tc.status || r.body != tc.body || r.header.Get("Content-Type") != tc.contentType || len(e.Refunds()) != tc.kept {
			t.Errorf("%+v: got %+v, %d refunds kept", tc, r, len(e.Refunds()))
		}
	}
}
