package console

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
)

// TestFaults sets each fault by HTTP.
func TestFaults(t *testing.T) {
	refund := func(s site) received { return s.refund("a") }
	lookup := func(s site) received { return s.lookup("0") }
	for _, tc := range []struct {
		rule   string
		send   func(site) received
		status int
		header string // name: value
		body   string // what it contains, or with $ at its end, all of it
		cut    bool
		accept bool
	}{
		{``, refund, 200, "", `{}$`, false, true},
		{`"status":503,"header":{"x-a":["b"],"content-type":["text/html"]},"body":"<html>"`, refund, 503, "X-A: b", `<html>$`, false, false},
		{`"status":500,"body":""`, refund, 500, "Content-Length: 0", `$`, false, false},
		{`"header":{"etag":null}`, site.download, 200, "Etag: ", `number_changed`, false, true},
		{`"status":429`, refund, 429, "Retry-After: 1", ``, false, false},
		{`"status":429,"retry_after":-1`, refund, 429, "Retry-After: ", ``, false, false},
		{`"status":503,"process":true`, refund, 503, "", ``, false, true},
		{`"drop":true`, refund, 0, "", ``, true, false},
		{`"drop":true,"process":true`, refund, 0, "", ``, true, true},
		{`"delay":0.001`, refund, 200, "", `{}$`, false, true},
		{`"truncate":5`, site.download, 200, "Content-Length: 200", `old_n$`, true, true},
		{`"header":{"content-length":null}`, refund, 200, "Content-Length: ", `{}$`, false, true},
		{`"fault":"rate_limited"`, lookup, 429, "Retry-After: 1", ``, false, false},
		{`"fault":"rate_limited","status":503,"retry_after":7`, refund, 503, "Retry-After: 7", ``, false, false},
		{`"fault":"server_error"`, refund, 503, "", ``, false, false},
		{`"fault":"drop_before_accept"`, refund, 0, "", ``, true, false},
		{`"fault":"drop_after_accept"`, refund, 0, "", ``, true, true},
		{`"fault":"job_not_ready"`, site.download, 409, "", `"code":"job_not_ready"`, false, false},
		{`"fault":"truncated"`, site.download, 200, "", `old_number`, true, true},
		{`"fault":"truncated"`, refund, 200, "", `{$`, true, true},
		{`"fault":"truncated"`, lookup, 200, "", `cards`, true, true},
		{`"fault":"truncated","area":"updater"`, refund, 200, "", `{}$`, false, true},
	} {
		s := start(t)
		s.fault(strings.TrimSuffix(`{"next":1,`+tc.rule, ",") + `}`)
		r := tc.send(s)
		name, value, _ := strings.Cut(tc.header, ": ")
		body, whole := strings.CutSuffix(tc.body, "$")
		if r.status != tc.status || (r.err != nil) != tc.cut || tc.header != "" && r.header.Get(name) != value ||
			!strings.Contains(r.body, body) || whole && r.body != body {
			t.Errorf("%s: %+v", tc.rule, r)
		}
		if e := s.requests()[0]; e.Accepted != tc.accept || e.Status != tc.status || e.State != complete && !tc.cut {
			t.Errorf("%s: recorded %+v", tc.rule, e)
		}
		if r := tc.send(s); r.status != 200 {
			t.Errorf("%s: then %+v", tc.rule, r)
		}
	}
}

// TestRefusedFaults checks that each refusal names the member.
func TestRefusedFaults(t *testing.T) {
	s := start(t)
	for rule, names := range map[string]string{
		``: "the body", `[]`: "the body", `{"fault":"slow","next":1}{}`: "the body",
		`{}`: "next or percent", `{"fault":"slow","next":0}`: "next or percent", `{"percent":1,"next":1}`: "next or percent",
		`{"fault":"other","next":1}`: "fault", `{"fault":7,"next":1}`: "fault", `{"area":"other","next":1}`: "area",
		`{"next":-1}`: "next", `{"next":"1"}`: "next", `{"next":2000000}`: "next", `{"percent":101}`: "percent", `{"percent":-1}`: "percent",
		`{"next":1,"delay":3601}`: "delay", `{"next":1,"delay":-1}`: "delay", `{"next":1,"retry_after":-2}`: "retry_after",
		`{"next":1,"status":199}`: "status", `{"next":1,"status":600}`: "status", `{"next":1,"drop":"x"}`: "drop", `{"next":1,"more":1}`: "more",
	} {
		r := s.send("POST", "/sandbox/faults", rule)
		if r.status != 400 || !strings.Contains(r.body, `"code":"bad_request"`) || !strings.Contains(r.body, names) {
			t.Errorf("%s: %+v", rule, r)
		}
	}
	if faults := get[state](s, "/sandbox/state").Faults; len(faults) != 0 {
		t.Errorf("in force: %+v", faults)
	}
}

// TestOrder checks which rules apply to which requests.
func TestOrder(t *testing.T) {
	job := func(id string) func(site) received {
		return func(s site) received { return s.send("GET", "/updater/inquiries/jobs/"+id+"/download", "") }
	}
	refund := func(s site) received { return s.refund("a") }
	lookup := func(s site) received { return s.lookup("411111") }
	elsewhere := func(s site) received { return s.send("GET", "/elsewhere", "") }
	for name, tc := range map[string]struct {
		rules []string
		send  []func(site) received
		want  []int
	}{
		"next before percent, and in order": {
			[]string{`{"area":"refunds","percent":100,"status":503}`, `{"area":"refunds","next":1,"status":500}`,
				`{"area":"refunds","next":2,"status":501}`, `{"area":"refunds","next":1}`},
			[]func(site) received{refund, refund, refund, refund, refund, lookup}, []int{500, 501, 501, 200, 503, 200}},
		"a named rule replaces another for the same": {
			[]string{`{"fault":"rate_limited","next":9}`, `{"fault":"rate_limited","next":2}`, `{"fault":"rate_limited","area":"bins","next":1}`},
			[]func(site) received{lookup, lookup, lookup, lookup}, []int{429, 429, 429, 200}},
		"paths": {
			[]string{`{"percent":100,"status":451,"path":"/updater/inquiries/jobs/7/download"}`, `{"percent":100,"status":452,"path":"/v1/acct*"}`},
			[]func(site) received{job("7"), job("42"), refund, lookup}, []int{451, 200, 452, 200}},
		"no area": {[]string{`{"next":1,"status":500}`}, []func(site) received{elsewhere, lookup}, []int{404, 500}},
	} {
		s := start(t)
		for _, rule := range tc.rules {
			s.fault(rule)
		}
		for i, send := range tc.send {
			if r := send(s); r.status != tc.want[i] {
				t.Errorf("%s: request %d: %d, want %d", name, i, r.status, tc.want[i])
			}
		}
	}
}

func TestRemoveFault(t *testing.T) {
	s := start(t)
	s.fault(`{"percent":100,"status":503}`)
	path := fmt.Sprintf("/sandbox/faults/%d", get[state](s, "/sandbox/state").Faults[0].ID)
	if r := s.send("DELETE", path, ""); r.status != 200 || s.refund("a").status != 200 {
		t.Errorf("%+v", r)
	}
	if r := s.send("DELETE", path, ""); r.status != 404 {
		t.Errorf("%+v", r)
	}
}

func TestPercentage(t *testing.T) {
	rules := faults{rules: []rule{{Name: truncated, Percent: 25}}}
	hit := 0
	for range 10_000 {
		if name, _ := rules.take("bins", ""); name != "" {
			hit++
		}
	}
	if hit < 2200 || hit > 2800 { // seven standard deviations
		t.Errorf("%d of 10,000 at 25 %%", hit)
	}
}

// TestSlow looks at a request while it waits, and after its caller left.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(false)
		set, err := readSetting([]byte(`{"fault":"slow","next":1,"delay":3600}`))
		if err != nil {
			t.Fatal(err)
		}
		c.faults.set(set.complete())
		ctx, leave := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, "POST", "/v1/acct/refunds", strings.NewReader(`{"refund_id":"a"}`))
		r.Header.Set("Content-Type", "application/json")
		go func() {
			defer func() { recover() }() // net/http ends the connection
			c.ServeHTTP(httptest.NewRecorder(), r)
		}()
		synctest.Wait()
		if list, _, _ := c.since(0); list.Requests[0].State != open || !list.Requests[0].Accepted {
			t.Errorf("while nobody has a response: %+v", list.Requests[0])
		}
		leave()
		synctest.Wait()
		if list, _, _ := c.since(0); list.Requests[0].State != left || list.Requests[0].Fault != slow {
			t.Errorf("after the caller left: %+v", list.Requests[0])
		}
	})
}

func TestSettings(t *testing.T) {
	s := start(t)
	job := func(id string, header ...string) received {
		return s.send("GET", "/updater/inquiries/jobs/"+id+"/download", "", header...)
	}
	for _, tc := range []struct {
		path, body string
		want       int
	}{
		{"/sandbox/cards/400000", `{"bin":"400000","data":null,"error":"blocked"}`, 200},
		{"/sandbox/cards/", `{"bin":"0","later":true}`, 200},
		{"/sandbox/jobs/a%2Fb", "own content", 200},
		{"/sandbox/jobs/big?size=1000000", "", 200},
		{"/sandbox/cards/4", `{`, 400},
		{"/sandbox/cards/4", strings.Repeat("1", maxSetting+1), 413},
		{"/sandbox/jobs/7?size=x", "", 400},
		{"/sandbox/other", `{}`, 404},
	} {
		if r := s.send("PUT", tc.path, tc.body, "Content-Type", "text/plain"); r.status != tc.want || tc.want != 200 && !strings.Contains(r.body, `"code"`) {
			t.Errorf("%s %.20s: %d %s", tc.path, tc.body, r.status, r.body)
		}
	}
	if r := s.lookup("4000001234", "9"); r.body != `{"cards":[{"bin":"400000","data":null,"error":"blocked"},{"bin":"0","later":true}]}` {
		t.Errorf("%+v", r)
	}
	if r := job("a%2Fb"); r.body != "own content" || r.header.Get("Content-Type") != "text/plain" {
		t.Errorf("%+v", r)
	}
	if r := job("big", "Range", "bytes=0-9"); r.body != `row,old_nu` || r.header.Get("Content-Range") != "bytes 0-9/1000000" {
		t.Errorf("%+v", r)
	}
	s.send("POST", "/sandbox/reset", "")
	if r := s.lookup("400000"); strings.Contains(r.body, "blocked") || job("big").status != 404 {
		t.Errorf("after a reset: %+v", r)
	}
}
