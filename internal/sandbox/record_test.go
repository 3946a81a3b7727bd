package sandbox

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestRecord(t *testing.T) {
	before := time.Now()
	e := New()
	d := memoryDoor(t, e, Refunds)
	e.Script(Refunds, Fault{Status: 429, Header: http.Header{"X": {"y"}}})
	req := newRequest(t, http.MethodPost, d.base+"/v1/a%2Fb/refunds", `{"refund_id":"r"}`)
	req.Header.Set("Authorization", "secret-key")
	d.do(req)
	got := e.Requests(Refunds)
	if len(got) != 1 {
		t.Fatalf("%d requests recorded", len(got))
	}
	r := got[0]
	if r.Method != "POST" || r.Path != "/v1/a%2Fb/refunds" || string(r.Body) != `{"refund_id":"r"}` ||
		r.Status != 429 || r.Time.Before(before) || r.Header.Get("Authorization") != "***" {
		t.Errorf("recorded %+v", r)
	}
	r.Header.Set("X-Merchant-Id", "changed")
	r.Body[0] = 'x'
	if again := e.Requests(Refunds)[0]; again.Header.Get("X-Merchant-Id") != "m-1" || again.Body[0] != '{' {
		t.Error("the record changed with the copy")
	}
}

func TestRetain(t *testing.T) {
	e := New()
	e.Retain(3)
	d := memoryDoor(t, e, Refunds)
	for i := range 8 {
		d.refund(t, fmt.Sprintf(`{"refund_id":"%d"}`, i))
	}
	var reqs, ids string
	for _, r := range e.Requests(Refunds) {
		reqs += string(r.Body)
	}
	for _, r := range e.Refunds() {
		ids += r.RefundID
	}
	if reqs != `{"refund_id":"5"}{"refund_id":"6"}{"refund_id":"7"}` || ids != "567" {
		t.Errorf("kept %s and %s, want the latest three in order", reqs, ids)
	}
}

func TestConcurrentUse(t *testing.T) {
	e := New()
	d := memoryDoor(t, e, Refunds)
	const callers, each = 8, 20
	e.Script(Refunds, slices.Repeat([]Fault{{Refuse: true}}, callers*each/2)...)
	var wg sync.WaitGroup
	var failed atomic.Int64
	for range callers {
		wg.Go(func() {
			for range each {
				if r := d.refund(t, `{}`); r.err != nil {
					failed.Add(1)
				}
				e.Requests(Refunds)
				e.Refunds()
			}
		})
	}
	wg.Wait()
	if failed.Load() != callers*each/2 || len(e.Refunds()) != callers*each/2 {
		t.Errorf("%d refused and %d recorded, want %d of each", failed.Load(), len(e.Refunds()), callers*each/2)
	}
}
