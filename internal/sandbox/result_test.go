package sandbox

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestValidators(t *testing.T) {
	date := time.Date(2031, 7, 1, 0, 0, 0, 0, time.UTC)
	content := strings.NewReader("0123456789")
	for name, tc := range map[string]struct {
		job     Job
		ifRange string // "etag" and "date" are those of the first response
		status  int
	}{
		"strong":          {Job{}, "etag", 206},
		"own":             {Job{ETag: new(`"v1"`)}, `"v1"`, 206},
		"other":           {Job{ETag: new(`"v1"`)}, `"v2"`, 200},
		"weak":            {Job{ETag: new(`W/"v1"`)}, `W/"v1"`, 200},
		"date":            {Job{ETag: new(""), LastModified: date}, "date", 206},
		"other date":      {Job{ETag: new(""), LastModified: date}, date.Add(time.Second).Format(http.TimeFormat), 200},
		"date of nothing": {Job{ETag: new("")}, date.Format(http.TimeFormat), 200},
		"no ranges":       {Job{NoRanges: true}, "etag", 200},
	} {
		t.Run(name, func(t *testing.T) {
			e := New()
			tc.job.Content = content
			e.SetJob("42", tc.job)
			d := memoryDoor(t, e, Updater)
			first := d.download(t)
			etag, modified := first.header.Get("ETag"), first.header.Get("Last-Modified")
			if tc.job.ETag != nil && etag != *tc.job.ETag || tc.job.ETag == nil && !strings.HasPrefix(etag, `"`) ||
				(modified == "") != tc.job.LastModified.IsZero() || (first.header.Get("Accept-Ranges") == "") != tc.job.NoRanges {
				t.Errorf("header %v", first.header)
			}
			ifRange := strings.NewReplacer("etag", etag, "date", modified).Replace(tc.ifRange)
			want := map[int]string{200: "0123456789", 206: "3456789"}[tc.status]
			if r := d.download(t, "Range", "bytes=3-", "If-Range", ifRange); r.status != tc.status || r.body != want {
				t.Errorf("If-Range %s: %+v", ifRange, r)
			}
		})
	}
}

func TestMerchants(t *testing.T) {
	e := New()
	e.SetJob("42", Job{Content: strings.NewReader("everyone's")})
	e.SetJob("42", Job{Content: strings.NewReader("theirs"), Merchant: "m-2"})
	e.SetJob("7", Job{Content: strings.NewReader("theirs"), Merchant: "m-2"})
	d := memoryDoor(t, e, Updater)
	other := d.download(t, "X-Merchant-Id", "m-2")
	if first := d.download(t); first.body != "everyone's" || other.body != "theirs" || first.header.Get("ETag") == other.header.Get("ETag") {
		t.Errorf("%+v and %+v", first, other)
	}
	if r := d.do(newRequest(t, http.MethodGet, d.base+"/updater/inquiries/jobs/7/download", "")); r.status != 404 {
		t.Errorf("another merchant's job: %+v", r)
	}
}

// A result of any size costs no memory.
func TestAnySize(t *testing.T) {
	const size = 10 << 40
	e := New()
	e.SetJob("42", Job{Content: Synthetic(JSONArray, size)})
	d := memoryDoor(t, e, Updater)
	r := d.download(t, "Range", "bytes=-5000")
	if r.status != 206 || len(r.body) != 5000 || !strings.HasSuffix(strings.TrimRight(r.body, "\n"), `"}`+"\n]") {
		t.Errorf("the end of %d bytes: %d, %v, %d bytes", int64(size), r.status, r.err, len(r.body))
	}
	d.close()
	if sent := e.Requests(Updater)[0].Sent; sent != 5000 {
		t.Errorf("recorded %d bytes sent", sent)
	}
}

func TestFaultsOfRanges(t *testing.T) {
	for name, tc := range map[string]struct {
		fault               Fault
		status              int
		body, contentRange  string
		header, headerValue string
	}{
		"ordinary":            {Fault{}, 206, "3456789", "bytes 3-9/10", "Etag", `"v1"`},
		"whole":               {Fault{Status: 200}, 200, "0123456789", "", "Etag", `"v1"`},
		"206 of the whole":    {Fault{Status: 206}, 206, "0123456789", "", "", ""},
		"another body":        {Fault{Body: "other"}, 200, "other", "", "", ""},
		"another range":       {Fault{Range: "bytes=5-6"}, 206, "56", "bytes 5-6/10", "Etag", `"v1"`},
		"multipart":           {Fault{Range: "bytes=0-1,5-6"}, 206, "", "", "Etag", `"v1"`},
		"beyond":              {Fault{Range: "bytes=10-"}, 416, `{"error":{"code":"range_not_satisfiable","message":"the result is not that long","details":{}}}`, "bytes */10", "", ""},
		"refused":             {Fault{Status: 416, Body: "-"}, 416, "-", "", "", ""},
		"changed":             {Fault{Header: http.Header{"ETag": {`"v2"`}}}, 200, "0123456789", "", "Etag", `"v2"`},
		"changed and ignored": {Fault{Header: http.Header{"ETag": {`"v2"`}}, Range: "bytes=3-"}, 206, "3456789", "bytes 3-9/10", "Etag", `"v2"`},
		"no validator":        {Fault{Header: http.Header{"ETag": nil}, Range: "bytes=3-"}, 206, "3456789", "bytes 3-9/10", "Etag", ""},
		"false Content-Range": {Fault{Header: http.Header{"content-range": {"bytes 4-9/10"}}}, 206, "3456789", "bytes 4-9/10", "", ""},
		"false total":         {Fault{Header: http.Header{"Content-Range": {"bytes 3-9/11"}}}, 206, "3456789", "bytes 3-9/11", "", ""},
		"no Content-Range":    {Fault{Header: http.Header{"Content-Range": nil}}, 206, "3456789", "", "", ""},
		"no Accept-Ranges":    {Fault{Header: http.Header{"Accept-Ranges": nil}}, 206, "3456789", "bytes 3-9/10", "Accept-Ranges", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := New()
			e.SetJob("42", Job{Content: strings.NewReader("0123456789"), ETag: new(`"v1"`)})
			e.Script(Updater, tc.fault)
			r := memoryDoor(t, e, Updater).download(t, "Range", "bytes=3-", "If-Range", `"v1"`)
			if r.err != nil || r.status != tc.status || r.header.Get("Content-Range") != tc.contentRange || tc.body != "" && r.body != tc.body {
				t.Errorf("got %+v", r)
			}
			if tc.header != "" && strings.Join(r.header.Values(tc.header), "|") != tc.headerValue {
				t.Errorf("%s = %q", tc.header, r.header.Values(tc.header))
			}
			if name == "multipart" && !strings.HasPrefix(r.header.Get("Content-Type"), "multipart/byteranges") {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestFraming(t *testing.T) {
	eachDoor(t, func(t *testing.T, open func(*testing.T, *Engine, Area) door) {
		for _, tc := range []struct {
			fault    Fault
			encoding string
			length   int64
			body     string
			cut      bool
		}{
			{Fault{}, "", 10, "0123456789", false},
			{Fault{Chunked: true}, "chunked", -1, "0123456789", false},
			{Fault{Chunked: true, Truncate: 4}, "chunked", -1, "0123", true},
			{Fault{Chunked: true, Truncate: -1}, "chunked", -1, "", true},
			{Fault{Chunked: true, Body: "01"}, "chunked", -1, "01", false},
			{Fault{Unframed: true}, "", -1, "0123456789", false},
			{Fault{Unframed: true, Truncate: 4}, "", -1, "0123", false},
			{Fault{Header: http.Header{"Content-Length": {"20"}}}, "", 20, "0123456789", true},
		} {
			e := New()
			e.SetJob("42", Job{Content: strings.NewReader("0123456789")})
			e.Script(Updater, tc.fault)
			d := open(t, e, Updater)
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
	})
}

func TestDelays(t *testing.T) {
	for _, tc := range []struct {
		fault  Fault
		before string
	}{
		{Fault{}, "01234"},
		{Fault{HeaderDelay: time.Minute}, "01234"},
		{Fault{DelayAfter: 7}, "0123456"},
		{Fault{DelayAfter: 7, Chunked: true}, "0123456"},
		{Fault{DelayAfter: -1}, ""},
		{Fault{Unframed: true}, "01234"},
		{Fault{Truncate: 4}, "01"},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := New()
			e.SetJob("42", Job{Content: strings.NewReader("0123456789")})
			tc.fault.BodyDelay = time.Hour
			e.Script(Updater, tc.fault)
			d := memoryDoor(t, e, Updater)
			begin := time.Now()
			resp, err := d.client.Do(newRequest(t, http.MethodGet, d.base+downloadPath, ""))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if got := time.Since(begin); got != tc.fault.HeaderDelay {
				t.Errorf("%+v: the header came after %v", tc.fault, got)
			}
			before := make([]byte, len(tc.before))
			if _, err := io.ReadFull(resp.Body, before); err != nil || string(before) != tc.before || time.Since(begin) != tc.fault.HeaderDelay {
				t.Errorf("%+v: %q, %v after %v", tc.fault, before, err, time.Since(begin))
			}
			if _, err := resp.Body.Read(make([]byte, 1)); err != nil || time.Since(begin) != tc.fault.HeaderDelay+time.Hour {
				t.Errorf("%+v: %v after %v", tc.fault, err, time.Since(begin))
			}
		})
	}
}
