package sandbox

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

const (
	lookupPath   = "/bins/multiple"
	refundPath   = "/v1/acct/refunds"
	downloadPath = "/updater/inquiries/jobs/42/download"
)

// A door is one way to reach an engine.
type door struct {
	base   string
	client *http.Client
	close  func()
}

func memoryDoor(t *testing.T, e *Engine, area Area) door {
	t.Helper()
	s := e.Start(area)
	t.Cleanup(s.Close)
	return door{"https://host", &http.Client{Transport: s.Transport()}, s.Close}
}

func tcpDoor(t *testing.T, e *Engine, _ Area) door {
	t.Helper()
	s, err := e.ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return door{s.URL(), &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, s.Close}
}

func eachDoor(t *testing.T, test func(t *testing.T, open func(*testing.T, *Engine, Area) door)) {
	t.Run("memory", func(t *testing.T) { test(t, memoryDoor) })
	t.Run("tcp", func(t *testing.T) { test(t, tcpDoor) })
}

func newRequest(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer secret-key")
	req.Header.Set("X-Merchant-Id", "m-1")
	req.Header.Set("Content-Type", "application/json")
	return req
}

type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

func (d door) do(req *http.Request) reply {
	resp, err := d.client.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body), err}
}

func (d door) refund(t *testing.T, body string) reply {
	t.Helper()
	return d.do(newRequest(t, http.MethodPost, d.base+refundPath, body))
}

func (d door) lookup(t *testing.T, body string) reply {
	t.Helper()
	return d.do(newRequest(t, http.MethodPost, d.base+lookupPath, body))
}

func (d door) download(t *testing.T, header ...string) reply {
	t.Helper()
	req := newRequest(t, http.MethodGet, d.base+downloadPath, "")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return d.do(req)
}

func TestOneMuxServesAllAreas(t *testing.T) {
	e := New()
	d := tcpDoor(t, e, "")
	if r := d.lookup(t, `{"cards":[{"card":"411111"}]}`); r.status != 200 {
		t.Errorf("lookup: %+v", r)
	}
	if r := d.refund(t, `{}`); r.status != 200 {
		t.Errorf("refund: %+v", r)
	}
	if r := d.download(t); r.status != 200 {
		t.Errorf("download: %+v", r)
	}
	if r := d.do(newRequest(t, http.MethodGet, d.base+"/", "")); r.status != 404 {
		t.Errorf("no area: %+v", r)
	}
	for _, area := range []Area{Bins, Refunds, Updater, ""} {
		if n := e.RequestCount(area); n != 1 {
			t.Errorf("area %q has %d requests, want 1", area, n)
		}
	}
}

func TestRejections(t *testing.T) {
	cards := func(n int) string {
		return `{"cards":[` + strings.TrimSuffix(strings.Repeat(`{"card":"411111"},`, n), ",") + `]}`
	}
	for name, tc := range map[string]struct {
		area               Area
		method, path, body string
		header, value      string
		want               int
	}{
		"lookup":                  {Bins, "POST", lookupPath, cards(50), "", "", 200},
		"lookup without cards":    {Bins, "POST", lookupPath, `{}`, "", "", 400},
		"lookup null cards":       {Bins, "POST", lookupPath, `{"cards":null}`, "", "", 400},
		"lookup empty":            {Bins, "POST", lookupPath, cards(0), "", "", 400},
		"lookup 51":               {Bins, "POST", lookupPath, cards(51), "", "", 400},
		"lookup not JSON":         {Bins, "POST", lookupPath, `cards`, "", "", 400},
		"lookup two values":       {Bins, "POST", lookupPath, cards(1) + "{}", "", "", 400},
		"lookup unknown member":   {Bins, "POST", lookupPath, `{"cards":[{"pan":"4"}]}`, "", "", 200},
		"lookup number":           {Bins, "POST", lookupPath, `{"cards":[{"card":411111}]}`, "", "", 400},
		"lookup no credential":    {Bins, "POST", lookupPath, cards(1), "Authorization", "", 401},
		"lookup empty credential": {Bins, "POST", lookupPath, cards(1), "Authorization", "Bearer ", 401},
		"lookup other scheme":     {Bins, "POST", lookupPath, cards(1), "Authorization", "Basic abc", 401},
		"lookup GET":              {Bins, "GET", lookupPath, "", "", "", 405},
		"lookup elsewhere":        {Bins, "POST", "/bins/single", cards(1), "", "", 404},
		"lookup as text":          {Bins, "POST", lookupPath, cards(1), "Content-Type", "text/plain", 415},
		"lookup with charset":     {Bins, "POST", lookupPath, cards(1), "Content-Type", "application/json; charset=utf-8", 200},
		"lookup too large":        {Bins, "POST", lookupPath, strings.Repeat(" ", maxBody+1), "", "", 413},
		"refund no credential":    {Refunds, "POST", refundPath, `{}`, "Authorization", "", 200},
		"refund array":            {Refunds, "POST", refundPath, `[]`, "", "", 400},
		"refund null":             {Refunds, "POST", refundPath, `null`, "", "", 400},
		"refund not JSON":         {Refunds, "POST", refundPath, `{`, "", "", 400},
		"refund PUT":              {Refunds, "PUT", refundPath, `{}`, "", "", 405},
		"refund no account":       {Refunds, "POST", "/v1//refunds", `{}`, "", "", 404},
		"refund two segments":     {Refunds, "POST", "/v1/a/b/refunds", `{}`, "", "", 404},
		"refund without type":     {Refunds, "POST", refundPath, `{}`, "Content-Type", "", 415},
		"download no credential":  {Updater, "GET", downloadPath, "", "Authorization", "", 401},
		"download no merchant":    {Updater, "GET", downloadPath, "", "X-Merchant-Id", "", 401},
		"download POST":           {Updater, "POST", downloadPath, "", "", "", 405},
		"download no job":         {Updater, "GET", "/updater/inquiries/jobs//download", "", "", "", 404},
		"download unknown job":    {Updater, "GET", "/updater/inquiries/jobs/7/download", "", "", "", 404},
	} {
		t.Run(name, func(t *testing.T) {
			e := New()
			d := memoryDoor(t, e, tc.area)
			req := newRequest(t, tc.method, d.base+tc.path, tc.body)
			if tc.header != "" {
				req.Header.Set(tc.header, tc.value)
			}
			r := d.do(req)
			if r.err != nil || r.status != tc.want {
				t.Fatalf("got %+v, want status %d", r, tc.want)
			}
			if tc.want >= 400 {
				checkErrorObject(t, r)
				if len(e.Refunds()) != 0 {
					t.Error("a rejected refund was recorded")
				}
			}
			if tc.want == 405 && r.header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
		})
	}
}

func checkErrorObject(t *testing.T, r reply) {
	t.Helper()
	var body struct {
		Error struct {
			Code    string         `json:"code"`
			Message string         `json:"message"`
			Details map[string]any `json:"details"`
		} `json:"error"`
	}
	err := json.Unmarshal([]byte(r.body), &body)
	if err != nil || body.Error.Code == "" || body.Error.Message == "" || body.Error.Details == nil {
		t.Errorf("error body %s, %v", r.body, err)
	}
	if r.header.Get("Content-Type") != "application/json" {
		t.Errorf("Content-Type %q", r.header.Get("Content-Type"))
	}
}

func TestReset(t *testing.T) {
	e := New()
	d := memoryDoor(t, e, Refunds)
	e.SetRefundResponse(202, "text/plain", "ok")
	d.refund(t, `{}`)
	e.Script(Refunds, Fault{Status: 503})
	e.SetJob("7", Job{})
	e.SetResult("999999", []byte(`{}`))
	e.Reset()
	if len(e.Requests(Refunds)) != 0 || e.RequestCount(Refunds) != 0 || len(e.Refunds()) != 0 || e.Pending(Refunds) != 0 {
		t.Error("Reset left records or faults")
	}
	if r := d.refund(t, `{}`); r.status != 200 || r.body != "{}" {
		t.Errorf("refund after Reset: %+v", r)
	}
	if e.jobs[jobKey{"", "7"}].header != nil || e.results["999999"].plain != nil {
		t.Error("Reset left a job or a result")
	}
}
