package sandbox

import (
	"context"
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
	const refund = `{"refund_id":"r-1"}`
	for name, tc := range map[string]struct {
		fault   Fault
		status  int
		body    string // "": an error object
		header  string
		value   string
		refunds int
	}{
		"ordinary":        {Fault{}, 200, "{}", "Content-Type", "application/json", 1},
		"status":          {Fault{Status: 503}, 503, "", "", "", 0},
		"unknown status":  {Fault{Status: 499}, 499, "", "", "", 0},
		"success status":  {Fault{Status: 202}, 202, "{}", "", "", 1},
		"processed":       {Fault{Status: 502, Process: true}, 502, "", "", "", 1},
		"retry after":     {Fault{Status: 429, RetryAfter: 1500 * time.Millisecond}, 429, "", "Retry-After", "2", 0},
		"retry after 60s": {Fault{Status: 429, RetryAfter: time.Minute}, 429, "", "Retry-After", "60", 0},
		"body":            {Fault{Status: 502, Body: "<html>", ContentType: "text/html"}, 502, "<html>", "Content-Type", "text/html", 0},
		"body only":       {Fault{Body: "not JSON"}, 200, "not JSON", "Content-Type", "application/json", 1},
		"redirect":        {Fault{Status: 307, Header: http.Header{"Location": {"/x"}}}, 307, "", "Location", "/x", 0},
	} {
		t.Run(name, func(t *testing.T) {
			eachDoor(t, func(t *testing.T, open func(*testing.T, *Engine, Area) door) {
				e := New()
				e.Script(Refunds, tc.fault)
				d := open(t, e, Refunds)
				d.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
				r := d.refund(t, refund)
				if r.err != nil || r.status != tc.status {
					t.Fatalf("got %+v, want status %d", r, tc.status)
				}
				if tc.body == "" {
					checkErrorObject(t, r)
				} else if r.body != tc.body {
					t.Errorf("body %q, want %q", r.body, tc.body)
				}
				if tc.header != "" && r.header.Get(tc.header) != tc.value {
					t.Errorf("%s: %q, want %q", tc.header, r.header.Get(tc.header), tc.value)
				}
				if n := len(e.Refunds()); n != tc.refunds {
					t.Errorf("%d refunds recorded, want %d", n, tc.refunds)
				}
				if e.Pending(Refunds) != 0 {
					t.Error("the fault was not consumed")
				}
			})
		})
	}
}

func TestFaultNoBody(t *testing.T) {
	for _, f := range []Fault{{Status: 429, NoBody: true}, {Status: 204}, {NoBody: true, ContentType: "text/plain"}} {
		e := New()
		e.Script(Bins, f)
		r := memoryDoor(t, e, Bins).lookup(t, `{"cards":[{"card":"1"}]}`)
		if r.err != nil || r.body != "" || r.header.Get("Content-Type") != f.ContentType {
			t.Errorf("%+v: got %+v, want no body", f, r)
		}
	}
}

func TestFaultRefuse(t *testing.T) {
	e := New()
	d := memoryDoor(t, e, Refunds)
	d.refund(t, `{}`) // leaves a connection behind if the transport keeps one
	e.Script(Refunds, Fault{Refuse: true}, Fault{Status: 503})
	r := d.refund(t, `{}`)
	var op *net.OpError
	if !errors.Is(r.err, syscall.ECONNREFUSED) || !errors.As(r.err, &op) || op.Op != "dial" {
		t.Errorf("got %+v, want a refused dial", r)
	}
	if e.RequestCount(Refunds) != 1 {
		t.Error("a refused request was recorded")
	}
	if r := d.refund(t, `{}`); r.status != 503 {
		t.Errorf("got %+v, want the next fault", r)
	}
}

func TestRefusalsAreLeftToDials(t *testing.T) {
	e := New()
	e.Script(Refunds, Fault{Refuse: true}, Fault{Refuse: true}, Fault{Status: 503}, Fault{Status: 502})
	if f, _ := e.nextButRefusals(Refunds); f.Status != 503 {
		t.Errorf("a request over an open connection got %+v, want 503", f)
	}
	for range 2 {
		if !e.takeRefusal(Refunds) {
			t.Error("a refusal was lost")
		}
	}
	if e.takeRefusal(Refunds) {
		t.Error("a dial was refused by another fault")
	}
	if f, _ := e.nextButRefusals(Refunds); f.Status != 502 {
		t.Errorf("got %+v, want 502", f)
	}
	e.Script(Refunds, Fault{Refuse: true})
	if f, _ := e.nextButRefusals(Refunds); f.Refuse || e.Pending(Refunds) != 1 {
		t.Errorf("got %+v, want ordinary service", f)
	}
}

func TestFaultDrops(t *testing.T) {
	eachDoor(t, func(t *testing.T, open func(*testing.T, *Engine, Area) door) {
		e := New()
		e.Script(Refunds, Fault{DropBefore: true}, Fault{DropAfter: true}, Fault{DropAfter: true, Status: 500})
		d := open(t, e, Refunds)
		for i, refunds := range []int{0, 1, 2} {
			if r := d.refund(t, `{"n":1}`); !errors.Is(r.err, syscall.ECONNRESET) {
				t.Errorf("request %d: %+v, want ECONNRESET", i, r)
			}
			if n := len(e.Refunds()); n != refunds {
				t.Errorf("after request %d: %d refunds, want %d", i, n, refunds)
			}
		}
		reqs := e.Requests(Refunds)
		if len(reqs) != 3 || reqs[0].Status != 0 || len(reqs[0].Body) != 0 || !reqs[0].Fault.DropBefore ||
			reqs[1].Status != 0 || string(reqs[1].Body) != `{"n":1}` {
			t.Errorf("recorded %+v", reqs)
		}
		if r := d.refund(t, `{}`); r.status != 200 {
			t.Errorf("after the script: %+v", r)
		}
	})
}

func TestRefuseOverTCPDrops(t *testing.T) {
	e := New()
	e.Script(Refunds, Fault{Refuse: true})
	if r := tcpDoor(t, e, Refunds).refund(t, `{}`); !errors.Is(r.err, syscall.ECONNRESET) {
		t.Errorf("got %+v, want ECONNRESET", r)
	}
	if len(e.Refunds()) != 0 || e.Pending(Refunds) != 0 {
		t.Error("the refused refund was processed, or the fault left in the script")
	}
}

func TestFaultTruncate(t *testing.T) {
	eachDoor(t, func(t *testing.T, open func(*testing.T, *Engine, Area) door) {
		e := New()
		e.SetJob("42", Job{Content: strings.NewReader("0123456789")})
		d := open(t, e, Updater)
		for _, tc := range []struct {
			truncate int
			body     string
			cut      bool
		}{{4, "0123", true}, {-1, "", true}, {10, "0123456789", false}, {11, "0123456789", false}} {
			e.Script(Updater, Fault{Truncate: tc.truncate})
			r := d.download(t)
			if r.status != 200 || r.body != tc.body || errors.Is(r.err, io.ErrUnexpectedEOF) != tc.cut {
				t.Errorf("Truncate %d: %+v, want %q", tc.truncate, r, tc.body)
			}
			if r.header.Get("Content-Length") != "10" {
				t.Errorf("Truncate %d: Content-Length %q", tc.truncate, r.header.Get("Content-Length"))
			}
		}
		e.Script(Updater, Fault{Truncate: 2, Body: "replaced"})
		if r := d.download(t); r.body != "re" || !errors.Is(r.err, io.ErrUnexpectedEOF) {
			t.Errorf("truncated replacement: %+v", r)
		}
	})
}

func TestDelayEndsWithCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New()
		e.Script(Refunds, Fault{HeaderDelay: 24 * time.Hour}, Fault{BodyDelay: 24 * time.Hour})
		d := memoryDoor(t, e, Refunds)
		for range 2 {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if r := d.do(newRequest(t, http.MethodPost, d.base+refundPath, `{}`).WithContext(ctx)); !errors.Is(r.err, context.DeadlineExceeded) {
				t.Errorf("got %+v, want the deadline", r)
			}
			cancel()
			d.close()
			if got := time.Since(start); got != time.Minute {
				t.Errorf("caller and server ended after %v, want a minute", got)
			}
			d = memoryDoor(t, e, Refunds)
		}
		if len(e.Refunds()) != 2 {
			t.Error("a refund is processed before its response is delayed")
		}
	})
}

func TestCloseEndsDelay(t *testing.T) {
	eachDoor(t, func(t *testing.T, open func(*testing.T, *Engine, Area) door) {
		e := New()
		e.Script(Updater, Fault{BodyDelay: 24 * time.Hour})
		d := open(t, e, Updater)
		resp, err := d.client.Do(newRequest(t, http.MethodGet, d.base+downloadPath, ""))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
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

func TestScriptPerArea(t *testing.T) {
	eachDoor(t, func(t *testing.T, open func(*testing.T, *Engine, Area) door) {
		e := New()
		e.Script(Bins, Fault{Status: 503}, Fault{Status: 504})
		e.Script(Refunds, Fault{})
		refunds, bins := open(t, e, Refunds), open(t, e, Bins)
		if r := refunds.refund(t, `{}`); r.status != 200 {
			t.Errorf("another area's fault: %+v", r)
		}
		for i, want := range []int{503, 504, 400} {
			if r := bins.lookup(t, `{}`); r.status != want {
				t.Errorf("lookup %d: %+v, want %d", i, r, want)
			}
			if n := e.Pending(Bins); n != max(0, 1-i) {
				t.Errorf("after lookup %d: %d pending", i, n)
			}
		}
	})
}

func TestScriptFunc(t *testing.T) {
	eachDoor(t, func(t *testing.T, open func(*testing.T, *Engine, Area) door) {
		e := New()
		e.Script(Updater, Fault{Status: 503})
		e.ScriptFunc(Updater, func(r Request) Fault {
			if r.Header.Get("X-Merchant-Id") == "m-2" {
				return Fault{Status: 400 + len(e.Requests(Updater))}
			}
			return Fault{Truncate: 4}
		})
		d := open(t, e, Updater)
		for i, want := range []struct {
			merchant string
			status   int
			body     string
		}{{"m-1", 503, ""}, {"m-1", 200, "old_"}, {"m-2", 403, ""}, {"m-1", 200, "old_"}} {
			r := d.download(t, "X-Merchant-Id", want.merchant)
			if r.status != want.status || want.body != "" && r.body != want.body {
				t.Errorf("download %d: %+v", i, r)
			}
		}
		d.close()
		if reqs := e.Requests(Updater); reqs[1].Fault.Truncate != 4 || reqs[1].Sent != 4 || reqs[2].Fault.Status != 403 {
			t.Errorf("recorded %+v", reqs)
		}
		e.Reset()
		if r := open(t, e, Updater).download(t); r.body != defaultResult {
			t.Errorf("after Reset: %+v", r)
		}
	})
}
