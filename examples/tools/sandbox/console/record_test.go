package console

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

func TestDuplicatesAndAttempts(t *testing.T) {
	s := start(t)
	s.refund("a") // 1
	s.refund("b")
	s.fault(`{"fault":"server_error","next":1}`)
	s.refund("c")
	s.refund("c") // 4: tried again, accepted once
	s.refund("a")
	s.refund("a") // 6
	s.send("POST", "/v1/other/refunds", `{"refund_id":"a"}`)
	s.send("POST", "/v1/acct/refunds", `[]`)
	s.send("POST", "/v1/acct/refunds", `[]`) // 9: after a 400 it is not another attempt
	s.lookup("411111")
	s.lookup("411111") // 11: nor after a success
	s.fault(`{"fault":"rate_limited","next":1}`)
	s.lookup("411111")
	s.lookup("411111") // 13
	for i, e := range s.requests() {
		want := map[int][3]int{4: {3, 2, 0}, 5: {1, 2, 1}, 6: {1, 3, 1}, 13: {12, 2, 0}}[i+1]
		if want == ([3]int{}) {
			want = [3]int{i + 1, 1, 0}
		}
		if got := [3]int{e.Group, e.Attempt, e.DuplicateOf}; e.Number != i+1 || got != want {
			t.Errorf("request %d: group, attempt, duplicate_of are %v, want %v", e.Number, got, want)
		}
	}
	counts := get[state](s, "/sandbox/state").Areas
	if got := counts["refunds"]; got != (count{Requests: 9, OK: 6, Rejected: 2, Failed: 1, Duplicates: 2, Refused: 2}) {
		t.Errorf("refunds: %+v", got)
	}
	if got := counts["bins"]; got != (count{Requests: 4, OK: 3, Limited: 1}) {
		t.Errorf("lookups: %+v", got)
	}
}

func TestReset(t *testing.T) {
	s := start(t)
	s.refund("a")
	s.fault(`{"fault":"slow","percent":100}`)
	s.send("POST", "/sandbox/reset", "")
	s.refund("a")
	all := s.requests()
	if len(all) != 1 || all[0].Number != 2 || all[0].DuplicateOf != 0 || all[0].Fault != "" {
		t.Errorf("%+v", all)
	}
	if r := s.send("GET", "/sandbox/requests/1", ""); r.status != 404 {
		t.Errorf("a request from before: %+v", r)
	}
}

func TestRecordIsBounded(t *testing.T) {
	r := newRecord()
	for range maxEntries + 10 {
		r.add(&entry{Area: "refunds"})
	}
	if len(r.entries) != maxEntries || r.dropped != 10 || r.entries[0].Number != 11 || r.counts["refunds"].Requests != maxEntries+10 {
		t.Errorf("%d kept, %d dropped, from %d on", len(r.entries), r.dropped, r.entries[0].Number)
	}
}

// A watcher looks into the record while the response is sent.
type watcher struct {
	*httptest.ResponseRecorder
	console *Console
	states  []string
}

func (w *watcher) Write(p []byte) (int, error) {
	list, _, _ := w.console.since(0)
	w.states = append(w.states, list.Requests[0].State)
	return w.ResponseRecorder.Write(p)
}

func TestRecordedBeforeTheCallerKnows(t *testing.T) {
	c := New(false)
	w := &watcher{httptest.NewRecorder(), c, nil}
	r := httptest.NewRequest("POST", "/v1/acct/refunds", strings.NewReader(`{}`))
	r.Header.Set("Content-Type", "application/json")
	if c.ServeHTTP(w, r); len(w.states) != 1 || w.states[0] != complete {
		t.Errorf("while the response was sent the request was %q", w.states)
	}
}

// TestCallerLeavesInTheBody breaks a body off where it could be whole. Like net/http, its
// reader fails once.
func TestCallerLeavesInTheBody(t *testing.T) {
	c := New(false)
	r := httptest.NewRequest("POST", "/v1/acct/refunds", iotest.TimeoutReader(strings.NewReader(`{}`)))
	r.Header.Set("Content-Type", "application/json")
	func() {
		defer func() { recover() }() // net/http ends the connection
		c.ServeHTTP(httptest.NewRecorder(), r)
	}()
	if list, _, _ := c.since(0); list.Requests[0].State != cut || list.Requests[0].Accepted {
		t.Errorf("%+v", list.Requests[0])
	}
}
