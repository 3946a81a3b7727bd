package sandbox

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestDownload(t *testing.T) {
	e := New()
	d := memoryDoor(t, e, Updater)
	r := d.download(t)
	if r.status != 200 || r.body != defaultResult || !strings.HasPrefix(r.header.Get("Content-Type"), "text/csv") {
		t.Fatalf("got %+v", r)
	}
	etag := r.header.Get("ETag")
	if !strings.HasPrefix(etag, `"`) || r.header.Get("Accept-Ranges") != "bytes" || r.header.Get("Content-Length") == "" {
		t.Errorf("header %v", r.header)
	}
	if p := d.download(t, "Range", "bytes=10-"); p.status != 206 || p.body != r.body[10:] || e.Requests(Updater)[1].Status != 206 {
		t.Errorf("range: %+v", p)
	}
	e.SetJob("42", Job{Content: strings.NewReader("<html>new")})
	if p := d.download(t, "Range", "bytes=1-", "If-Range", etag); p.status != 200 || p.body != "<html>new" || p.header.Get("ETag") == etag {
		t.Errorf("range of changed content: %+v", p)
	} else if !strings.HasPrefix(p.header.Get("Content-Type"), "text/html") {
		t.Errorf("detected Content-Type %q", p.header.Get("Content-Type"))
	}
}

func TestJobs(t *testing.T) {
	date := time.Date(2031, 7, 1, 0, 0, 0, 0, time.UTC)
	e := New()
	e.SetJob("42", Job{Content: strings.NewReader("everyone's")})
	e.SetJob("42", Job{Content: strings.NewReader("theirs"), Merchant: "m-2"})
	e.SetJob("7", Job{Content: strings.NewReader("theirs"), Merchant: "m-2"})
	e.SetJob("a/b", Job{Content: strings.NewReader("dated"), ETag: new(""), LastModified: date, NoRanges: true})
	d := memoryDoor(t, e, Updater)
	for _, tc := range []struct {
		id, merchant string
		status       int
		body         string
	}{
		{"42", "m-1", 200, "everyone's"},
		{"42", "m-2", 200, "theirs"},
		{"7", "m-2", 200, "theirs"},
		{"7", "m-1", 404, `{"error":{"code":"job_not_found","message":"no such job","details":{}}}`},
		{"a%2Fb", "m-1", 200, "dated"},
		{"a", "m-1", 404, `{"error":{"code":"job_not_found","message":"no such job","details":{}}}`},
	} {
		if r := d.job(t, tc.id, "X-Merchant-Id", tc.merchant); r.status != tc.status || r.body != tc.body {
			t.Errorf("job %s of %s: %+v", tc.id, tc.merchant, r)
		}
	}
	r := d.job(t, "a%2Fb", "Range", "bytes=1-")
	if r.status != 200 || r.header.Get("Etag") != "" || r.header.Get("Accept-Ranges") != "" || r.header.Get("Last-Modified") != date.Format(http.TimeFormat) {
		t.Errorf("neither ETag nor ranges: %+v", r)
	}
}

func TestFaultsOfRanges(t *testing.T) {
	for name, tc := range map[string]struct {
		fault              Fault
		status             int
		body, contentRange string
		etag               string
	}{
		"ordinary":            {Fault{}, 206, "3456789", "bytes 3-9/10", `"v1"`},
		"whole":               {Fault{Status: 200}, 200, "0123456789", "", `"v1"`},
		"206 of the whole":    {Fault{Status: 206}, 206, "0123456789", "", `"v1"`},
		"another body":        {Fault{Body: new("other")}, 200, "other", "", `"v1"`},
		"another range":       {Fault{Status: 206, Body: new("56"), Header: http.Header{"Content-Range": {"bytes 5-6/10"}}}, 206, "56", "bytes 5-6/10", `"v1"`},
		"changed":             {Fault{Header: http.Header{"ETag": {`"v2"`}}}, 200, "0123456789", "", `"v2"`},
		"false Content-Range": {Fault{Header: http.Header{"content-range": {"bytes 4-9/10"}}}, 206, "3456789", "bytes 4-9/10", `"v1"`},
		"no Content-Range":    {Fault{Header: http.Header{"Content-Range": nil}}, 206, "3456789", "", `"v1"`},
	} {
		e := New()
		e.SetJob("42", Job{Content: strings.NewReader("0123456789"), ETag: new(`"v1"`)})
		e.Script(Updater, tc.fault)
		r := memoryDoor(t, e, Updater).download(t, "Range", "bytes=3-", "If-Range", `"v1"`)
		if r.err != nil || r.status != tc.status || r.header.Get("Content-Range") != tc.contentRange || r.body != tc.body || r.header.Get("Etag") != tc.etag {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
