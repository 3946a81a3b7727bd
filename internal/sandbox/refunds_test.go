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
	for status, kept := range map[int]int{201: 1, 204: 1, 422: 0} {
		e := New()
		body := map[bool]string{false: `{"message":"no"}`}[status == 204]
		e.SetRefundResponse(status, "text/plain", body)
		r := memoryDoor(t, e, Refunds).refund(t, `{}`)
		if want := map[bool]string{false: "text/plain"}[status == 204]; r.header.Get("Content-Type") != want {
			t.Errorf("%d: labelled %q", status, r.header.Get("Content-Type"))
		}
		if r.err != nil || r.status != status || r.body != body || len(e.Refunds()) != kept {
			t.Errorf("%d: got %+v, %d refunds kept", status, r, len(e.Refunds()))
		}
	}
}

// A receipt without a label is sent without one.
func TestRefundResponseWithoutLabel(t *testing.T) {
	e := New()
	e.SetRefundResponse(200, "", "OK")
	if r := memoryDoor(t, e, Refunds).refund(t, `{}`); r.body != "OK" || r.header["Content-Type"] != nil {
		t.Errorf("%+v", r)
	}
}
