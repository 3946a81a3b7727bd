package sandbox

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

// like returns an engine with a profile of one point or more.
func like(t *testing.T, points string) *Engine {
	t.Helper()
	p, err := ParseProfile([]byte(`{"version": 1, "points": {` + points + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	e := New()
	if err := e.SetProfile(p); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestLookupsLikeAProfile(t *testing.T) {
	const two = `{"cards":[{"card":"4111111111111111"},{"card":"42424242"}]}`
	const known, strange = `{"cards":[{"card":"411111"}]}`, `{"cards":[{"card":"99999999999"}]}`
	for _, tc := range []struct {
		points, body string
		status       int
		path, want   string // a member of the response as JSON, "" when it is not there
	}{
		{`"lookup.order":["changed"]`, two, 200, "cards.0.bin", `"424242"`},
		{`"lookup.order":["kept"]`, two, 200, "cards.0.bin", `"411111"`},
		{`"lookup.items":["fewer"]`, two, 200, "cards.1", ``},
		{`"lookup.items":["fewer"]`, known, 200, "cards.0.bin", `"411111"`},
		{`"lookup.items":["more"]`, two, 200, "cards.2.bin", `"424242"`},
		{`"lookup.duplicates":["merged"]`, `{"cards":[{"card":"411111"},{"card":"411111"},{"card":"424242"}]}`, 200, "cards.1.bin", `"424242"`},
		{`"lookup.duplicates":["kept"]`, `{"cards":[{"card":"411111"},{"card":"411111"}]}`, 200, "cards.1.bin", `"411111"`},
		{`"lookup.echo":["whole"]`, two, 200, "cards.0.bin", `"4111111111111111"`},
		{`"lookup.echo":["whole"]`, strange, 200, "cards.0.bin", `"99999999999"`},
		{`"lookup.echo":["prefix 9"]`, two, 200, "cards.0.bin", `"411111111"`},
		{`"lookup.echo":["prefix 9"]`, known, 200, "cards.0.bin", `"411111"`},
		{`"lookup.echo":["absent"]`, two, 200, "cards.0.bin", ``},
		{`"lookup.unknown":["error item"]`, strange, 200, "cards.0.error", `"unknown bin"`},
		{`"lookup.unknown":["null data"]`, strange, 200, "cards.0.error", ``},
		{`"lookup.unknown":["null data"]`, strange, 200, "cards.0.data", `null`},
		{`"lookup.unknown":["left out"]`, strange, 200, "cards.0", ``},
		{`"lookup.unknown":["status 422"]`, strange, 422, "error.code", `"unknown_bin"`},
		{`"lookup.unknown":["status 422"]`, known, 200, "cards.0.bin", `"411111"`},
		{`"lookup.nulls":["none"]`, known, 200, "cards.0.error", ``},
		{`"lookup.nulls":["none"]`, known, 200, "cards.0.data.card.alm", ``},
		{`"lookup.nulls":["bank.phone","additional_card_brands"]`, known, 200, "cards.0.data.card.bank.phone", `null`},
		{`"lookup.nulls":["additional_card_brands.ecom_enabled"]`, `{"cards":[{"card":"45717360"}]}`, 200, "cards.0.data.card.additional_card_brands.0.ecom_enabled", `null`},
		{`"lookup.enhanced":["no difference","default like false"]`, `{"cards":[{"card":"411111"}],"enhanced":true}`, 200, "cards.0.data.card.alm", `null`},
		{`"lookup.enhanced":["alm","like false"]`, `{"cards":[{"card":"411111"}],"enhanced":true}`, 200, "cards.0.data.card.alm", `true`},
		{`"lookup.enhanced":["alm","like false"]`, known, 200, "cards.0.data.card.alm", ``},
		{`"lookup.enhanced":["alm","default like true"]`, known, 200, "cards.0.data.card.alm", `true`},
		{`"lookup.enhanced":["alm","bank.name","like neither"]`, known, 200, "cards.0.data.card.bank.name", `"X"`},
		{`"lookup.enhanced":["shared_bin","like neither"]`, `{"cards":[{"card":"411111"}],"enhanced":true}`, 200, "cards.0.data.card.shared_bin", `false`},
		{`"lookup.enhanced":["shared_bin","like neither"]`, `{"cards":[{"card":"411111"}],"enhanced":false}`, 200, "cards.0.data.card.shared_bin", ``},
		{`"lookup.enhanced":["shared_bin","like neither"]`, known, 200, "cards.0.data.card.shared_bin", `true`},
		{`"lookup.enhanced":["alm","like neither"]`, known, 200, "cards.0.data.card.alm", `false`},
		{`"lookup.enhanced":["additional_card_brands.ecom_enabled"]`, `{"cards":[{"card":"411111"}],"enhanced":true}`, 200, "cards.0.data.card.additional_card_brands.0.ecom_enabled", `true`},
		{`"lookup.enhanced":["cost.interchange.intra.cap_type_name"]`, `{"cards":[{"card":"411111"}],"enhanced":true}`, 200, "cards.0.data.card.cost.interchange.intra.cap_type_name", `"Y"`},
		{`"lookup.enhanced":["bank.name"],"lookup.nulls":["bank"]`, `{"cards":[{"card":"411111"}],"enhanced":true}`, 200, "cards.0.data.card.bank.name", `"FIRST EXAMPLE BANK"`},
		{`"lookup.enhanced":["bank.name"],"lookup.nulls":["bank"]`, `{"cards":[{"card":"424242"}],"enhanced":true}`, 200, "cards.0.data.card.bank", `null`},
		{`"lookup.enhanced":["alm"],"lookup.nulls":["alm"]`, known, 200, "cards.0.data.card.alm", `null`},
		{`"lookup.enhanced":["number.length"],"lookup.nulls":["none"]`, `{"cards":[{"card":"411111"}],"enhanced":false}`, 200, "cards.0.data.card.number.length", ``},
		{`"lookup.bounds":["0: 200, 51: 413"]`, `{"cards":[]}`, 200, "cards", `[]`},
		{`"lookup.bounds":["0: 422, 51: 413"]`, `{"cards":[]}`, 422, "error.code", `"bad_request"`},
		{`"lookup.bounds":["0: 422, 51: 413"]`, many(51), 413, "error.code", `"bad_request"`},
		{`"lookup.bounds":["0: 422, 51: 200"]`, many(51), 200, "cards.50.bin", `"411111"`},
		{`"lookup.error":["message"]`, `{"cards":1}`, 400, "message", `"cards is a number where the interface has an array"`},
		{`"lookup.error":["code","message"]`, `{"cards":1}`, 400, "code", `"bad_request"`},
		{`"lookup.error":["empty"]`, `{"cards":1}`, 400, "", ``},
		{`"lookup.error":["documented object"]`, `{"cards":1}`, 400, "error.code", `"bad_request"`},
	} {
		r := memoryDoor(t, like(t, tc.points), Bins).lookup(t, tc.body)
		if got := member(r.body, tc.path); r.status != tc.status || got != tc.want {
			t.Errorf("%s: %d, %s = %s\n%s", tc.points, r.status, tc.path, got, r.body)
		}
	}
}

func many(cards int) string {
	return `{"cards":[` + strings.TrimSuffix(strings.Repeat(`{"card":"411111"},`, cards), ",") + `]}`
}

// member returns a member of a JSON text by its path.
func member(text, path string) string {
	v := json.RawMessage(text)
	for part := range strings.SplitSeq(path, ".") {
		var object map[string]json.RawMessage
		var array []json.RawMessage
		switch {
		case json.Unmarshal(v, &object) == nil:
			v = object[part]
		case json.Unmarshal(v, &array) == nil:
			var at int
			json.Unmarshal([]byte(part), &at)
			if at >= len(array) {
				return ""
			}
			v = array[at]
		default:
			return ""
		}
	}
	return string(v)
}

func TestCredentialsLikeAProfile(t *testing.T) {
	e := like(t, `"lookup.unauthorized":["403"],"refund.credential":["refused 401"]`)
	lookup := memoryDoor(t, e, Bins)
	for credential, want := range map[string]int{"Bearer a": 200, "Bearer a-broken": 403} {
		req := newRequest(t, http.MethodPost, lookup.base+lookupPath, `{"cards":[{"card":"411111"}]}`)
		req.Header.Set("Authorization", credential)
		if r := lookup.do(req); r.status != want {
			t.Errorf("%s: %+v", credential, r)
		}
	}
	refund := memoryDoor(t, e, Refunds)
	req := newRequest(t, http.MethodPost, refund.base+refundPath, `{}`)
	if r := refund.do(req); r.status != 200 {
		t.Errorf("%+v", r)
	}
	req = newRequest(t, http.MethodPost, refund.base+refundPath, `{}`)
	req.Header.Del("Authorization")
	if r := refund.do(req); r.status != 401 || e.RefundCount() != 1 {
		t.Errorf("%+v", r)
	}
}

func TestRefundsLikeAProfile(t *testing.T) {
	const shape = `"refund.response":["202","application/vnd.x+json","{\"id\":\"string\",\"string\":\"integer\",\"l\":[\"null\",\"boolean\",\"number\"]}"]`
	for _, tc := range []struct {
		points            string
		first, second     int
		differ, unchanged bool
		recorded          int
	}{
		{shape, 202, 202, false, true, 2},
		{`"refund.duplicate":["refused 409"],` + shape, 202, 409, true, false, 1},
		{`"refund.duplicate":["same response"],` + shape, 202, 202, false, true, 1},
		{`"refund.duplicate":["another response"],` + shape, 202, 202, true, false, 2},
		{`"refund.duplicate":["another response"]`, 200, 200, true, false, 2},
		{`"refund.response":["204"]`, 204, 204, false, true, 2},
	} {
		e := like(t, tc.points)
		d := memoryDoor(t, e, Refunds)
		first, second := d.refund(t, `{"refund_id":"a"}`), d.refund(t, `{"refund_id":"a"}`)
		if first.status != tc.first || second.status != tc.second || (first.body != second.body) != tc.differ || e.RefundCount() != tc.recorded {
			t.Errorf("%s: %+v, %+v, %d recorded", tc.points, first, second, e.RefundCount())
		}
		if !strings.Contains(tc.points, "vnd") {
			continue
		}
		var got struct {
			ID     string
			String int
			L      []any
		}
		if err := json.Unmarshal([]byte(first.body), &got); err != nil || got.ID == "" || len(got.L) != 3 || first.header.Get("Content-Type") != "application/vnd.x+json" {
			t.Errorf("%s: %+v, %v", tc.points, first, err)
		}
	}
	e := like(t, `"refund.required":["amount","additional_data.order_id"]`)
	d := memoryDoor(t, e, Refunds)
	if r := d.refund(t, `{"amount":1}`); r.status != 400 || member(r.body, "error.details.path") != `"additional_data.order_id"` {
		t.Errorf("%+v", r)
	}
	if r := d.refund(t, `{"amount":1,"additional_data":{"order_id":"a"}}`); r.status != 200 || e.RefundCount() != 1 {
		t.Errorf("%+v", r)
	}
}

func TestDownloadsLikeAProfile(t *testing.T) {
	for _, tc := range []struct {
		points, job string
		header      []string
		status      int
		want        map[string]string
	}{
		{`"download.missing":["410 gone"]`, "7", nil, 410, map[string]string{"Content-Type": "application/json"}},
		{`"download.pending":["202 wait"]`, PendingJobID, nil, 202, map[string]string{"Content-Type": "application/json"}},
		{`"download.missing":["410"]`, PendingJobID, nil, 410, nil},
		{`"download.content":["ndjson","no length"]`, "42", nil, 200, map[string]string{"Content-Type": "application/x-ndjson", "Content-Length": ""}},
		{`"download.content":["json","length announced"]`, "42", nil, 200, map[string]string{"Content-Type": "application/json", "Content-Length": "4096"}},
		{`"download.content":["other"]`, "42", nil, 200, map[string]string{"Content-Type": "application/octet-stream"}},
		{`"download.resume":["no ranges","no validator"]`, "42", []string{"Range", "bytes=3-"}, 200, map[string]string{"Etag": "", "Last-Modified": "", "Accept-Ranges": ""}},
		{`"download.resume":["ranges","date","If-Range heeded"]`, "42", []string{"Range", "bytes=3-"}, 206, map[string]string{"Etag": "", "Last-Modified": "Tue, 01 Jul 2031 00:00:00 GMT"}},
		{`"download.resume":["ranges","strong validator","If-Range heeded"]`, "42", []string{"Range", "bytes=3-", "If-Range", `"x"`}, 200, nil},
		{`"download.resume":["ranges","strong validator","ignored"]`, "42", []string{"Range", "bytes=3-", "If-Range", `"x"`}, 206, nil},
		{`"service.request_id":["X-Request-Id"],"service.quota":["X-RateLimit-Limit","X-RateLimit-Remaining"]`, "42", nil, 200,
			map[string]string{"X-Request-Id": "request-1", "X-Ratelimit-Limit": "1000", "X-Ratelimit-Remaining": "999"}},
	} {
		d := memoryDoor(t, like(t, tc.points), Updater)
		req := newRequest(t, http.MethodGet, d.base+"/updater/inquiries/jobs/"+tc.job+"/download", "")
		for i := 0; i < len(tc.header); i += 2 {
			req.Header.Set(tc.header[i], tc.header[i+1])
		}
		r := d.do(req)
		if r.err != nil || r.status != tc.status {
			t.Errorf("%s: %+v", tc.points, r)
		}
		for name, value := range tc.want {
			if r.header.Get(name) != value {
				t.Errorf("%s: %s = %q, want %q", tc.points, name, r.header.Get(name), value)
			}
		}
	}
}

// TestWhatIsSetGoesBeforeTheProfile sets a result and a response of a test's own.
func TestWhatIsSetGoesBeforeTheProfile(t *testing.T) {
	e := like(t, `"lookup.echo":["absent"],"refund.response":["202"]`)
	e.SetResult("9", json.RawMessage(`{"bin":"9"}`))
	e.SetRefundResponse(200, "text/plain", "own")
	if r := memoryDoor(t, e, Bins).lookup(t, `{"cards":[{"card":"99"}]}`); r.body != `{"cards":[{"bin":"9"}]}` {
		t.Errorf("%+v", r)
	}
	if r := memoryDoor(t, e, Refunds).refund(t, `{}`); r.status != 200 || r.body != "own" {
		t.Errorf("%+v", r)
	}
	e.Script(Bins, Fault{Status: 400, Body: "own"})
	if r := memoryDoor(t, e, Bins).lookup(t, `{}`); r.body != "own" {
		t.Errorf("%+v", r)
	}
}

func TestIdleConnectionsLikeAProfile(t *testing.T) {
	server, err := like(t, `"service.idle":["closed after 7 s"]`).ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if d := server.running.server.IdleTimeout; d != 7*time.Second {
		t.Errorf("idle connections are closed after %v", d)
	}
}

func TestParseProfile(t *testing.T) {
	for text, want := range map[string]string{
		`{"version":1,"points":{}}`: "",
		`{"version":2,"points":{}}`: "version 2",
		`{"points":{}}`:             "version 0",
		`[]`:                        "not the JSON",
		`{"version":1,"poinst":{}}`: "not the JSON",
		`{"version":1,"points":{"lookup.odrer":["kept"]}}`:                   `"lookup.odrer" is not a point`,
		`{"version":1,"points":{"lookup.order":["kept","changed"]}}`:         "lookup.order cannot be read",
		`{"version":1,"points":{"lookup.order":[]}}`:                         "lookup.order cannot be read",
		`{"version":1,"points":{"lookup.echo":["prefix x"]}}`:                "lookup.echo",
		`{"version":1,"points":{"lookup.echo":["prefix 0"]}}`:                "lookup.echo",
		`{"version":1,"points":{"lookup.unknown":["status 99"]}}`:            "lookup.unknown",
		`{"version":1,"points":{"lookup.bounds":["400"]}}`:                   "lookup.bounds",
		`{"version":1,"points":{"lookup.nulls":["a b"]}}`:                    "lookup.nulls",
		`{"version":1,"points":{"lookup.enhanced":["alm","like x"]}}`:        "lookup.enhanced",
		`{"version":1,"points":{"download.missing":["x"]}}`:                  "download.missing",
		`{"version":1,"points":{"download.content":["xml"]}}`:                "download.content",
		`{"version":1,"points":{"download.resume":["perhaps"]}}`:             "download.resume",
		`{"version":1,"points":{"refund.response":["200","a/b","{"]}}`:       "refund.response",
		`{"version":1,"points":{"refund.credential":["perhaps"]}}`:           "refund.credential",
		`{"version":1,"points":{"service.request_id":["A","B"]}}`:            "service.request_id",
		`{"version":1,"points":{"service.idle":["closed after 0 s"]}}`:       "service.idle",
		`{"version":1,"points":{"service.idle":["open after 120 s"]}}`:       "",
		`{"version":1,"points":{"service.quota":["none"]}}`:                  "",
		`{"version":1,"points":{"lookup.enhanced":["no difference"]}}`:       "",
		`{"version":1,"points":{"refund.response":["200","text/plain",""]}}`: "",
	} {
		_, err := ParseProfile([]byte(text))
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
