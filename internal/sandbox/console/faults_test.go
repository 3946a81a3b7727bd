package console

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

func TestFaults(t *testing.T) {
	s := start(t)
	for _, tc := range []struct {
		rule   string
		send   func() received
		status int
		cut    bool
		entry  entry
	}{
		{`{"fault":"rate_limited","next":1,"retry_after":7}`, func() received { return s.lookup("411111") }, 429, false,
			entry{Fault: rateLimited, State: complete, Status: 429}},
		{`{"fault":"drop_after_accept","next":1}`, func() received { return s.refund("a") }, 0, true,
			entry{Fault: dropAfterAccept, State: cut, Accepted: true}},
		{`{"fault":"server_error","area":"updater","percent":100,"status":502}`, s.download, 502, false,
			entry{Fault: serverError, State: complete, Status: 502}},
		{`{"fault":"server_error","area":"updater"}`, s.download, 200, false,
			entry{State: complete, Status: 200, Accepted: true}},
		{`{"fault":"truncated","next":1}`, s.download, 200, true,
			entry{Fault: truncated, State: cut, Status: 200, Accepted: true}},
		{`{"fault":"truncated","next":1}`, func() received { return s.refund("b") }, 200, true,
			entry{Fault: truncated, State: cut, Status: 200, Accepted: true}},
		{`{"fault":"truncated","next":1}`, func() received { return s.lookup("0") }, 200, true,
			entry{Fault: truncated, State: cut, Status: 200, Accepted: true}},
		{`{"fault":"truncated","area":"bins","next":1}`, func() received { return s.refund("c") }, 200, false,
			entry{State: complete, Status: 200, Accepted: true}},
	} {
		s.fault(tc.rule)
		r := tc.send()
		if r.status != tc.status || (r.err != nil) != tc.cut {
			t.Errorf("%s: %+v", tc.rule, r)
		}
		if want := map[bool]string{true: "7"}[tc.status == 429]; r.header.Get("Retry-After") != want {
			t.Errorf("%s: %+v", tc.rule, r)
		}
		all := s.requests()
		e := all[len(all)-1]
		if got := (entry{Fault: e.Fault, State: e.State, Status: e.Status, Accepted: e.Accepted}); got.Fault != tc.entry.Fault ||
			got.State != tc.entry.State || got.Status != tc.entry.Status || got.Accepted != tc.entry.Accepted {
			t.Errorf("%s: recorded %+v", tc.rule, got)
		}
	}
	if faults := get[state](s, "/sandbox/state").Faults; len(faults) != 1 || faults[0].Area != "bins" || faults[0].Next != 1 {
		t.Errorf("in force: %+v", faults)
	}
	if r := s.send("DELETE", "/sandbox/faults", ""); r.status != 200 || len(get[state](s, "/sandbox/state").Faults) != 0 {
		t.Errorf("after DELETE: %+v", r)
	}
}

func TestSlow(t *testing.T) {
	s := start(t)
	s.fault(`{"fault":"slow","next":1,"delay":3600}`)
	stream := s.listen()
	stream.next("snapshot")
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req := s.request("POST", "/v1/acct/refunds", `{"refund_id":"a"}`).WithContext(ctx)
	gone := make(chan error)
	go func() {
		_, err := http.DefaultTransport.RoundTrip(req)
		gone <- err
	}()
	var e entry
	for e.State != open || !e.Accepted {
		e = stream.next("update").Requests[0] // while nobody has a response
	}
	leave()
	if err := <-gone; err == nil {
		t.Error("responded at once")
	}
	for e.State == open {
		e = stream.next("update").Requests[0]
	}
	if e.State != left || e.Fault != slow {
		t.Errorf("recorded %+v", e)
	}
}

func TestRules(t *testing.T) {
	s := start(t)
	for _, rule := range []string{
		``, `[]`, `{}`, `{"fault":"other","next":1}`, `{"fault":"slow","area":"other"}`, `{"fault":"slow","next":-1}`,
		`{"fault":"slow","percent":101}`, `{"fault":"slow","percent":1,"next":1}`, `{"fault":"slow","next":1,"delay":0}`,
		`{"fault":"server_error","next":1,"status":200}`, `{"fault":"slow","more":1}`, `{"fault":"slow","next":1}{}`,
		`{"next":1,"status":199}`, `{"next":1,"status":600}`, `{"status":500}`, `{"next":1,"retry_after":-1}`, `{"next":1,"delay":3601}`,
		`{"next":1,"code":"a"}`, `{"next":1,"code":"a","status":204}`, `{"next":1,"status":400,"code":"a","body":"b"}`,
		`{"next":1,"header":{"a b":"c"}}`, `{"next":1,"header":{"a":"b\r\nc: d"}}`, `{"next":1,"drop_before":true,"drop_after":true}`,
		`{"next":1,"bytes_per_second":-1}`, `{"next":1,"content_length":-1}`,
	} {
		if r := s.send("POST", "/sandbox/faults", rule); r.status != 400 || !strings.Contains(r.body, `"code":"bad_request"`) {
			t.Errorf("%.80s: %+v", rule, r)
		}
	}
	if r := s.send("POST", "/sandbox/faults", `{"body":"`+strings.Repeat("x", maxRule)+`"}`); r.status != 413 {
		t.Errorf("too large: %+v", r)
	}
	if r := s.send("POST", "/sandbox/faults", `{"fault":"slow","next":1}`, "Content-Type", "text/plain"); r.status != 415 {
		t.Errorf("as text: %+v", r)
	}
	s.fault(`{"fault":"rate_limited","next":9}`)
	s.fault(`{"fault":"rate_limited","next":2}`)
	s.fault(`{"fault":"rate_limited","area":"bins","next":1}`)
	for i, want := range []int{429, 429, 429, 200} {
		if r := s.lookup("411111"); r.status != want {
			t.Errorf("lookup %d: %d, want %d", i, r.status, want)
		}
	}
	s.fault(`{"fault":"rate_limited","next":1}`)
	if r := s.send("GET", "/elsewhere", ""); r.status != 404 {
		t.Errorf("a fault befell what belongs to no area: %+v", r)
	}
}

func TestPercentage(t *testing.T) {
	rules := faults{rules: []rule{{Fault: truncated, Percent: 25}}}
	hit := 0
	for range 10_000 {
		if name, _ := rules.take("bins", nil, ""); name != "" {
			hit++
		}
	}
	if hit < 2200 || hit > 2800 { // seven standard deviations
		t.Errorf("%d of 10,000 at 25 %%", hit)
	}
}
