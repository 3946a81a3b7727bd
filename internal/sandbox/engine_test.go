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
	return door{"https://host", &http.Client{Transport: s.Transport}, s.Close}
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

func (d door) post(t *testing.T, area Area, body string) reply {
	t.Helper()
	return d.do(newRequest(t, http.MethodPost, d.base+map[Area]string{Bins: lookupPath, Refunds: refundPath}[area], body))
}

func (d door) refund(t *testing.T, body string) reply { return d.post(t, Refunds, body) }

func (d door) lookup(t *testing.T, body string) reply { return d.post(t, Bins, body) }

func (d door) download(t *testing.T, header ...string) reply {
	t.Helper()
	return d.job(t, "42", header...)
}

func (d door) job(t *testing.T, id string, header ...string) reply {
	t.Helper()
	req := newRequest(t, http.MethodGet, d.base+"/updater/inquiries/jobs/"+id+"/download", "")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return d.do(req)
}

// TestAreas sends requests to all areas at one address. Each area has its own script and
// record.
func TestAreas(t *testing.T) {
	e := New()
	e.Script(Bins, Fault{Status: 503}, Fault{Status: 504})
	d := tcpDoor(t, e, "")
	for i, want := range []int{503, 504, 200} {
		if r := d.lookup(t, `{"cards":[{"card":"411111"}]}`); r.status != want || e.Pending(Bins) != max(0, 1-i) {
			t.Errorf("lookup %d: %+v, %d faults left", i, r, e.Pending(Bins))
		}
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
	for area, want := range map[Area]int{Bins: 3, Refunds: 1, Updater: 1, "": 1} {
		if n := e.RequestCount(area); n != want {
			t.Errorf("area %q has %d requests, want %d", area, n, want)
		}
	}
}

func TestRejections(t *testing.T) {
	const cards = `{"cards":[{"card":"411111"}]}`
	for name, tc := range map[string]struct {
		area               Area
		method, path, body string
		header, value      string
		want               int
	}{
		"lookup no credential":    {Bins, "POST", lookupPath, cards, "Authorization", "", 401},
		"lookup empty credential": {Bins, "POST", lookupPath, cards, "Authorization", "Bearer ", 401},
		"lookup other scheme":     {Bins, "POST", lookupPath, cards, "Authorization", "Basic abc", 401},
		"lookup GET":              {Bins, "GET", lookupPath, "", "", "", 405},
		"lookup elsewhere":        {Bins, "POST", "/bins/single", cards, "", "", 404},
		"lookup as text":          {Bins, "POST", lookupPath, cards, "Content-Type", "text/plain", 415},
		"lookup with charset":     {Bins, "POST", lookupPath, cards, "Content-Type", "application/json; charset=utf-8", 200},
		"lookup too large":        {Bins, "POST", lookupPath, strings.Repeat(" ", maxBody+1), "", "", 413},
		"refund no credential":    {Refunds, "POST", refundPath, `{}`, "Authorization", "", 200},
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
