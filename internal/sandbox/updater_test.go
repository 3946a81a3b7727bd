package sandbox

import (
	"net/http"
	"strings"
	"testing"
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

func TestJobIDs(t *testing.T) {
	e := New()
	e.SetJob("a/b", Job{Content: strings.NewReader("content")})
	d := memoryDoor(t, e, Updater)
	if r := d.do(newRequest(t, http.MethodGet, d.base+"/updater/inquiries/jobs/a%2Fb/download", "")); r.body != "content" {
		t.Errorf("got %+v", r)
	}
	r := d.do(newRequest(t, http.MethodGet, d.base+"/updater/inquiries/jobs/a/download", ""))
	if r.status != 404 || !strings.Contains(r.body, `"code":"job_not_found"`) {
		t.Errorf("unknown job: %+v", r)
	}
}
