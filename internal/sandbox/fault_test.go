package sandbox

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestFaultResponses(t *testing.T) {
	for name, tc := range map[string]struct {
		fault   Fault
		status  int
		body    string // "error": an error object
		header  string
		value   string
		refunds int
	}{
		"ordinary":       {Fault{}, 200, "{}", "Content-Type", "application/json", 1},
		"status":         {Fault{Status: 503}, 503, "error", "", "", 0},
		"unknown status": {Fault{Status: 499}, 499, "error", "", "", 0},
		"success status": {Fault{Status: 202}, 202, "{}", "", "", 1},
		"processed":      {Fault{Status: 502, Process: true}, 502, "error", "", "", 1},
		"429":            {Fault{Status: 429}, 429, "error", "Retry-After", "1", 0},
		"429, unsigned":  {Fault{Status: 429, RetryAfter: -1}, 429, "error", "Retry-After", "", 0},
		"retry after":    {Fault{Status: 429, RetryAfter: 1500 * time.Millisecond}, 429, "error", "Retry-After", "2", 0},
		"body":           {Fault{Status: 502, Body: new("<html>"), Header: http.Header{"Content-Type": {"text/html"}}}, 502, "<html>", "Content-Type", "text/html", 0},
		"body only":      {Fault{Body: new("not JSON")}, 200, "not JSON", "Content-Type", "application/json", 1},
		"redirect":       {Fault{Status: 307, Header: http.Header{"location": {"/x"}}}, 307, "error", "Location", "/x", 0},
		"no header":      {Fault{Header: http.Header{"Content-Type": nil}}, 200, "{}", "Content-Type", "", 1},
		"no label":       {Fault{Body: new("<html>"), Header: http.Header{"Content-Type": nil}}, 200, "<html>", "Content-Type", "", 1},
		"as Django":      {Fault{Status: 201, Body: new(""), Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}}, 201, "", "Content-Type", "text/html; charset=utf-8", 1},
		"as Flask":       {Fault{Body: new("OK"), Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}}, 200, "OK", "Content-Type", "text/html; charset=utf-8", 1},
		"as PHP":         {Fault{Header: http.Header{"Content-Type": {"text/html"}}}, 200, "{}", "Content-Type", "text/html", 1},
		"no body":        {Fault{Status: 429, Body: new("")}, 429, "", "Content-Type", "", 0},
		"no content":     {Fault{Status: 204}, 204, "", "Content-Type", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := New()
			e.Script(Refunds, tc.fault)
			d := memoryDoor(t, e, Refunds)
			d.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			r := d.refund(t, `{"refund_id":"r-1"}`)
			if r.err != nil || r.status != tc.status || tc.header != "" && r.header.Get(tc.header) != tc.value {
				t.Fatalf("got %+v, want status %d, %s: %q", r, tc.status, tc.header, tc.value)
			}
			if tc.body == "error" {
				checkErrorObject(t, r)
			} else if r.body != tc.body {
				t.Errorf("body %q, want %q", r.body, tc.body)
			}
			if n := len(e.Refunds()); n != tc.refunds || e.Pending(Refunds) != 0 {
				t.Errorf("%d refunds recorded, want %d; %d faults left", n, tc.refunds, e.Pending(Refunds))
			}
		})
	}
}

// TestRefusalsAreLeftToDials has requests arrive over connections that were made before the
// refusals were at the head of the script.
func TestRefusalsAreLeftToDials(t *testing.T) {
	e := New()
	e.Script(Refunds, Fault{Refuse: true}, Fault{Status: 503})
	if f, _ := e.nextButRefusals(Refunds); f.Status != 503 {
		t.Errorf("got %+v, want 503", f)
	}
	if f, scripted := e.nextButRefusals(Refunds); scripted {
		t.Errorf("got %+v, want ordinary service", f)
	}
	if !e.takeRefusal(Refunds) || e.takeRefusal(Refunds) {
		t.Error("the refusal was lost, or refused twice")
	}
}

func TestFaultDrops(t *testing.T) {
	eachDoor(t, func(t *testing.T, open func(*testing.T, *Engine, Area) door) {
		e := New()
		e.Script(Refunds, Fault{Drop: true}, Fault{Drop: true, Process: true}, Fault{Drop: true, Process: true, Status: 500})
		d := open(t, e, Refunds)
		for i, refunds := range []int{0, 1, 2} {
			if r := d.refund(t, `{"n":1}`); !errors.Is(r.err, syscall.ECONNRESET) || len(e.Refunds()) != refunds {
				t.Errorf("request %d: %+v, %d refunds, want ECONNRESET and %d", i, r, len(e.Refunds()), refunds)
			}
		}
		reqs := e.Requests(Refunds)
		if len(reqs) != 3 || reqs[0].Status != 0 || len(reqs[0].Body) != 0 || reqs[1].Status != 0 || string(reqs[1].Body) != `{"n":1}` {
			t.Errorf("recorded %+v", reqs)
		}
	})
	// Only in memory a connection can be refused. At an address it is there already.
	refusing := New()
	refusing.Script(Refunds, Fault{Refuse: true})
	if r := memoryDoor(t, refusing, Refunds).refund(t, `{}`); !errors.Is(r.err, syscall.ECONNREFUSED) || refusing.RequestCount(Refunds) != 0 {
		t.Errorf("a refusal in memory: %+v", r)
	}
	e := New()
	e.Script(Refunds, Fault{Refuse: true})
	if r := tcpDoor(t, e, Refunds).refund(t, `{}`); !errors.Is(r.err, syscall.ECONNRESET) || len(e.Refunds()) != 0 || e.Pending(Refunds) != 0 {
		t.Errorf("a refusal: %+v", r)
	}
}

// TestFraming checks how a body of ten bytes is sent, and where it is cut off.
func TestFraming(t *testing.T) {
	chunked, unframed := http.Header{"Content-Length": nil}, http.Header{"Content-Length": nil, "Transfer-Encoding": {"identity"}}
	for _, tc := range []struct {
		fault    Fault
		encoding string
		length   int64
		body     string
		cut      bool
	}{
		{Fault{}, "", 10, "0123456789", false},
		{Fault{Truncate: 4}, "", 10, "0123", true},
		{Fault{Truncate: -1}, "", 10, "", true},
		{Fault{Truncate: 10}, "", 10, "0123456789", false},
		{Fault{Truncate: 2, Body: new("replaced")}, "", 8, "re", true},
		{Fault{Header: chunked}, "chunked", -1, "0123456789", false},
		{Fault{Header: chunked, Truncate: 4}, "chunked", -1, "0123", true},
		{Fault{Header: chunked, Truncate: -1}, "chunked", -1, "", true},
		{Fault{Header: chunked, Body: new("01")}, "chunked", -1, "01", false},
		{Fault{Header: unframed}, "", -1, "0123456789", false},
		{Fault{Header: unframed, Truncate: 4}, "", -1, "0123", false},
		{Fault{Header: http.Header{"Content-Length": {"20"}}}, "", 20, "0123456789", true},
	} {
		e := New()
		e.SetJob("42", Job{Content: strings.NewReader("0123456789")})
		e.Script(Updater, tc.fault)
		d := memoryDoor(t, e, Updater)
		resp, err := d.client.Do(newRequest(t, http.MethodGet, d.base+downloadPath, ""))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if strings.Join(resp.TransferEncoding, ",") != tc.encoding || resp.ContentLength != tc.length ||
			string(body) != tc.body || errors.Is(err, io.ErrUnexpectedEOF) != tc.cut {
			t.Errorf("%+v: %v, length %d, %q, %v", tc.fault, resp.TransferEncoding, resp.ContentLength, body, err)
		}
	}
}

func TestDelays(t *testing.T) {
	for _, tc := range []struct {
		fault  Fault
		header time.Duration // when it comes; the end comes after an hour
		before string        // the end
	}{
		{Fault{}, time.Hour, "0123456789"},
		{Fault{Truncate: 7}, 0, "0123456"},
		{Fault{Truncate: 7, Header: http.Header{"Content-Length": nil}}, 0, "0123456"},
		{Fault{Truncate: -1}, 0, ""},
		{Fault{Truncate: 10}, 0, "0123456789"}, // nothing is cut off
	} {
		synctest.Test(t, func(t *testing.T) {
			e := New()
			e.SetJob("42", Job{Content: strings.NewReader("0123456789")})
			tc.fault.Delay = time.Hour
			e.Script(Updater, tc.fault)
			d := memoryDoor(t, e, Updater)
			begin := time.Now()
			resp, err := d.client.Do(newRequest(t, http.MethodGet, d.base+downloadPath, ""))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			before := make([]byte, len(tc.before))
			if _, err := io.ReadFull(resp.Body, before); err != nil || string(before) != tc.before || time.Since(begin) != tc.header {
				t.Errorf("%+v: %q, %v after %v", tc.fault, before, err, time.Since(begin))
			}
			whole := len(tc.before) == 10
			if _, err := resp.Body.Read(make([]byte, 1)); (err == io.EOF) != whole || !whole && time.Since(begin) != time.Hour {
				t.Errorf("%+v: %v after %v", tc.fault, err, time.Since(begin))
			}
		})
	}
}

func TestCloseEndsDelay(t *testing.T) {
	eachDoor(t, func(t *testing.T, open func(*testing.T, *Engine, Area) door) {
		e := New()
		e.Script(Updater, Fault{Truncate: 10, Delay: 24 * time.Hour})
		d := open(t, e, Updater)
		resp, err := d.client.Do(newRequest(t, http.MethodGet, d.base+downloadPath, ""))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		d.close()
		d.close()
		if body, err := io.ReadAll(resp.Body); err == nil || !strings.HasPrefix(defaultResult, string(body)) {
			t.Errorf("read %q, %v; want a broken body", body, err)
		}
		var op *net.OpError // systems name the reason differently
		if r := d.download(t); !errors.As(r.err, &op) || op.Op != "dial" {
			t.Errorf("after Close: %+v, want a refused dial", r)
		}
	})
}

// TestScriptFunc has the function look at the record, once the script is empty.
func TestScriptFunc(t *testing.T) {
	e := New()
	e.Script(Updater, Fault{Status: 503})
	e.ScriptFunc(Updater, func(Request) Fault { return Fault{Status: 400 + len(e.Requests(Updater))} })
	d := memoryDoor(t, e, Updater)
	for i, want := range []int{503, 402, 403} {
		if r := d.download(t); r.status != want || e.Requests(Updater)[i].Status != want {
			t.Errorf("download %d: %+v, want %d", i, r, want)
		}
	}
}

// TestScriptFor: a text is a whole value of the body or a segment of the path, a later one goes
// first, and the script before all of them.
func TestScriptFor(t *testing.T) {
	e := New()
	e.ScriptFor(Refunds, "a/b", Fault{Status: 403})
	e.ScriptFor(Refunds, "rf_1", Fault{Status: 400})
	e.ScriptFor(Refunds, "rf_2", Fault{Refuse: true})
	e.ScriptFor(Refunds, "rf_3", Fault{Status: 400})
	e.ScriptFor(Refunds, "rf_3", Fault{})
	e.Script(Refunds, Fault{Status: 503})
	d := memoryDoor(t, e, Refunds)
	for i, test := range []struct {
		account, id string
		want        int // 0: no response
	}{
		{"acct", "rf_1", 503}, {"acct", "rf_1", 400}, {"acct", "rf_1", 400}, {"acct", "rf_10", 200},
		{"a%2Fb", "rf_1", 400}, {"a%2Fb", "rf_4", 403}, {"b", "rf_4", 200}, {"acct", "rf_2", 0}, {"acct", "rf_3", 200},
	} {
		r := d.do(newRequest(t, http.MethodPost, d.base+"/v1/"+test.account+"/refunds", `{"refund_id":"`+test.id+`"}`))
		if r.status != test.want || (r.err != nil) != (test.want == 0) {
			t.Errorf("%d: %+v, want %d", i, r, test.want)
		}
	}
}
