package console

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEverythingAGoTestScripts sets by HTTP what the fakes let a Go test set.
func TestEverythingAGoTestScripts(t *testing.T) {
	refund := func(s site) received { return s.refund("a") }
	for _, tc := range []struct {
		name   string
		rule   string
		send   func(site) received
		status int
		header string // name: value
		body   string // what it contains, or with $ at its end, all of it
		cut    bool
		accept bool
	}{
		{"status", `{"status":418}`, refund, 418, "Content-Type: application/json", `"scripted"`, false, false},
		{"status and code", `{"status":422,"code":"amount_too_high","message":"no"}`, refund, 422, "Content-Type: application/json",
			`{"error":{"code":"amount_too_high","details":{},"message":"no"}}$`, false, false},
		{"header and body", `{"status":503,"header":{"x-a":"b"},"body":"<html>","content_type":"text/html"}`, refund, 503, "X-A: b", `<html>$`, false, false},
		{"another content type", `{"body":"<html>","content_type":"text/html"}`, refund, 200, "Content-Type: text/html", `<html>$`, false, true},
		{"no body", `{"status":500,"body":""}`, refund, 500, "Content-Length: 0", `$`, false, false},
		{"a header less", `{"header":{"etag":null}}`, site.download, 200, "Etag: ", `number_changed`, false, true},
		{"a date to retry after", `{"status":429,"header":{"Retry-After":"Tue, 01 Jul 2031 00:00:00 GMT"}}`, refund, 429, "Retry-After: Tue, 01 Jul 2031 00:00:00 GMT", ``, false, false},
		{"recorded all the same", `{"status":503,"process":true}`, refund, 503, "", ``, false, true},
		{"drop before", `{"drop_before":true}`, refund, 0, "", ``, true, false},
		{"drop after", `{"drop_after":true}`, refund, 0, "", ``, true, true},
		{"a delay", `{"delay":0.001,"body_delay":0.001,"delay_after":-1}`, refund, 200, "", `{}$`, false, true},
		{"slowly", `{"bytes_per_second":100000}`, site.download, 200, "", `account_closed`, false, true},
		{"cut", `{"truncate":5}`, site.download, 200, "Content-Length: 200", `old_n$`, true, true},
		{"cut at once", `{"truncate":0}`, site.download, 200, "Content-Length: 200", `$`, true, true},
		{"a length too long", `{"content_length":999}`, refund, 200, "Content-Length: 999", `{}$`, true, true},
		{"a length too short", `{"content_length":1}`, refund, 200, "Content-Length: 1", `{$`, false, true},
		{"chunks", `{"chunked":true}`, refund, 200, "Content-Length: ", `{}$`, false, true},
		{"the end as the end", `{"unframed":true}`, refund, 200, "Content-Length: ", `{}$`, false, true},
		{"another range", `{"range":"bytes=4-9"}`, site.download, 206, "Content-Range: bytes 4-9/200", `number$`, false, true},
		{"a redirect", `{"status":307,"header":{"Location":"/elsewhere"}}`, refund, 307, "Location: /elsewhere", ``, false, false},
		{"drop_before_accept", `{"fault":"drop_before_accept"}`, refund, 0, "", ``, true, false},
		{"wrong_length", `{"fault":"wrong_length"}`, refund, 200, "Content-Length: 1048576", `{}$`, true, true},
		{"job_not_ready", `{"fault":"job_not_ready"}`, site.download, 409, "", `"code":"job_not_ready"`, false, false},
		{"a named one with details", `{"fault":"rate_limited","status":503,"code":"busy"}`, refund, 503, "Retry-After: 1", `"busy"`, false, false},
		{"nothing", `{}`, refund, 200, "", `{}$`, false, true},
	} {
		s := start(t)
		s.fault(strings.Replace(strings.Replace(tc.rule, "{", `{"next":1,`, 1), ",}", "}", 1))
		r := tc.send(s)
		name, value, _ := strings.Cut(tc.header, ": ")
		body, whole := strings.CutSuffix(tc.body, "$")
		if r.status != tc.status || (r.err != nil) != tc.cut || tc.header != "" && r.header.Get(name) != value ||
			!strings.Contains(r.body, body) || whole && r.body != body {
			t.Errorf("%s: %+v", tc.name, r)
		}
		if e := s.requests()[0]; e.Accepted != tc.accept {
			t.Errorf("%s: accepted %v", tc.name, e.Accepted)
		}
		if r := tc.send(s); r.status != 200 {
			t.Errorf("%s: then %+v", tc.name, r)
		}
	}
}

func TestScriptInOrder(t *testing.T) {
	s := start(t)
	for _, rule := range []string{
		`{"area":"refunds","next":1,"status":500}`, `{"area":"refunds","next":2,"status":501}`, `{"area":"refunds","next":1}`, `{"area":"refunds","percent":100,"status":503}`,
	} {
		s.fault(rule)
	}
	for i, want := range []int{500, 501, 501, 200, 503, 503} {
		if r := s.refund("a"); r.status != want {
			t.Errorf("refund %d: %d, want %d", i, r.status, want)
		}
	}
	left := get[state](s, "/sandbox/state").Faults
	if len(left) != 1 || *left[0].Status != 503 {
		t.Fatalf("%+v", left)
	}
	path := "/sandbox/faults/" + jsonNumber(left[0].ID)
	if r := s.send("DELETE", path, ""); r.status != 200 || s.refund("a").status != 200 {
		t.Errorf("%+v", r)
	}
	if r := s.send("DELETE", path, ""); r.status != 404 {
		t.Errorf("%+v", r)
	}
}

func jsonNumber(n int) string {
	text, _ := json.Marshal(n)
	return string(text)
}

func TestMatch(t *testing.T) {
	s := start(t)
	for _, rule := range []string{
		`{"percent":100,"status":451,"match":{"path":"/updater/inquiries/jobs/7/download"}}`,
		`{"percent":100,"status":452,"match":{"path":"/v1/acct*","body":"\"refund_id\":\"x\""}}`,
		`{"percent":100,"status":453,"area":"updater","match":{"header":{"Range":"*"}}}`,
		`{"percent":100,"status":454,"area":"updater","match":{"header":{"x-merchant-id":"m-2"}}}`,
	} {
		s.fault(rule)
	}
	for i, tc := range []struct {
		r    received
		want int
	}{
		{s.send("GET", "/updater/inquiries/jobs/7/download", ""), 451},
		{s.refund("x"), 452},
		{s.refund("y"), 200},
		{s.send("GET", "/updater/inquiries/jobs/42/download", "", "Range", "bytes=1-"), 453},
		{s.send("GET", "/updater/inquiries/jobs/42/download", "", "X-Merchant-Id", "m-2"), 454},
		{s.download(), 200},
	} {
		if tc.r.status != tc.want {
			t.Errorf("request %d: %+v", i, tc.r)
		}
	}
}

func TestSettings(t *testing.T) {
	s := start(t)
	put := func(path, body string, header ...string) {
		t.Helper()
		if r := s.send("PUT", path, body, header...); r.status != 200 {
			t.Fatalf("%s: %+v", path, r)
		}
	}
	get := func(path string, header ...string) received {
		return s.send("GET", "/updater/inquiries/jobs/"+path+"/download", "", header...)
	}

	put("/sandbox/cards/400000", `{"bin":"400000","data":null,"error":"blocked"}`)
	put("/sandbox/cards", `{"bin":"0","later":true}`)
	if r := s.lookup("4000001234", "9"); r.body != `{"cards":[{"bin":"400000","data":null,"error":"blocked"},{"bin":"0","later":true}]}` {
		t.Errorf("%+v", r)
	}
	put("/sandbox/refund-response", `{"status":202,"content_type":"application/json","body":"{\"id\":1}"}`)
	if r := s.refund("a"); r.status != 202 || r.body != `{"id":1}` {
		t.Errorf("%+v", r)
	}
	put("/sandbox/jobs/a%2Fb?merchant=m-1&etag=%22v1%22&last_modified=2031-07-01T00:00:00Z&ranges=false", "own content", "Content-Type", "text/plain")
	r := get("a%2Fb", "Range", "bytes=4-")
	if r.body != "own content" || r.header.Get("Etag") != `"v1"` || r.header.Get("Last-Modified") == "" || r.header.Get("Content-Type") != "text/plain" {
		t.Errorf("%+v", r)
	}
	if r := get("a%2Fb", "X-Merchant-Id", "m-2"); r.status != 404 {
		t.Errorf("%+v", r)
	}
	put("/sandbox/jobs/big?size=1000000&format=ndjson&etag=", "")
	if r := get("big", "Range", "bytes=0-9"); r.body != `{"row":"00` || r.header.Get("Content-Range") != "bytes 0-9/1000000" || r.header.Get("Etag") != "" {
		t.Errorf("%+v", r)
	}
	put("/sandbox/profile", `{"version":1,"points":{"download.missing":["410 gone"]}}`)
	if r := get("7"); r.status != 410 {
		t.Errorf("%+v", r)
	}
	if r := s.send("DELETE", "/sandbox/profile", ""); r.status != 200 || get("7").status != 404 {
		t.Errorf("%+v", r)
	}
	for _, tc := range []struct {
		path, body string
		want       int
	}{
		{"/sandbox/cards/4", `{`, 400},
		{"/sandbox/cards/4", strings.Repeat("1", maxSetting+1), 413},
		{"/sandbox/jobs/7?size=x", "", 400},
		{"/sandbox/jobs/7?size=1&format=xml", "", 400},
		{"/sandbox/jobs/7?last_modified=x", "", 400},
		{"/sandbox/refund-response", `{"status":99}`, 400},
		{"/sandbox/refund-response", `{"staus":200}`, 400},
		{"/sandbox/profile", `{"version":1,"points":{"x":["y"]}}`, 400},
		{"/sandbox/other", `{}`, 404},
	} {
		if r := s.send("PUT", tc.path, tc.body); r.status != tc.want || !strings.Contains(r.body, `"code"`) {
			t.Errorf("%s %.20s: %d %s", tc.path, tc.body, r.status, r.body)
		}
	}
	s.send("POST", "/sandbox/reset", "")
	if r := s.refund("a"); r.status != 200 || s.lookup("400000").body == "" || get("big").status != 404 {
		t.Errorf("after a reset: %+v", r)
	}
}

// TestDocumentDescribesEachRoute compares the routes of the API with its OpenAPI
// document.
func TestDocumentDescribesEachRoute(t *testing.T) {
	s := start(t)
	var document struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal([]byte(s.send("GET", "/sandbox/openapi.json", "").body), &document); err != nil {
		t.Fatal(err)
	}
	parameter := regexp.MustCompile(`\{.*?\}`)
	c := New(Options{})
	routes := 0
	for path, operations := range document.Paths {
		for method, operation := range operations {
			routes++
			r, err := http.NewRequest(strings.ToUpper(method), parameter.ReplaceAllString(path, "1"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, pattern := c.mux.Handler(r); pattern != strings.ToUpper(method)+" "+path || operation.OperationID == "" {
				t.Errorf("%s %s is served as %q", method, path, pattern)
			}
		}
	}
	if routes != 16 {
		t.Errorf("%d operations are described, and 16 served", routes)
	}
	var names []string
	var fault struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	json.Unmarshal(openapi, &fault)
	for name := range fault.Components.Schemas["Fault"].Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	all, _ := json.Marshal(rule{ID: 1, Area: "bins", Next: 1, Percent: 1, Match: &match{}, details: details{Status: new(1), RetryAfter: new(1), Code: "a", Message: "a",
		Header: map[string]*string{"a": nil}, Body: new("a"), ContentType: "a", ContentLength: new(1), Process: true, DropBefore: true, DropAfter: true, Delay: new(1.0),
		BodyDelay: new(1.0), DelayAfter: 1, BytesPerSecond: 1, Truncate: new(1), Chunked: true, Unframed: true, Range: "a"}})
	var members map[string]any
	json.Unmarshal(all, &members)
	for name := range members {
		if !slices.Contains(names, name) {
			t.Errorf("the document lacks %s of a fault", name)
		}
	}
	if len(members) != len(names) {
		t.Errorf("the document has %d members of a fault, of %d", len(names), len(members))
	}
	var service struct{ Paths map[string]any }
	if json.Unmarshal([]byte(s.send("GET", "/openapi.json", "").body), &service) != nil || len(service.Paths) != 3 {
		t.Errorf("the service's document: %+v", service)
	}
}
