package updater_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

// TestDownload: content and header arrive as the service sent them, and printing a
// download shows neither.
func TestDownload(t *testing.T) {
	said := []string{"Content-Type", "text/csv; charset=utf-8", "ETag", `"canary"`, "Last-Modified", "Fri, 20 Nov 2026 08:00:00 GMT", "X-Request-Id", "req-7", "X-Quota-Left", "canary"}
	for name, test := range map[string]struct {
		content string
		header  []string
		length  int64
	}{
		"empty":              {"", said, 0},
		"bytes":              {"\x00\xff\r\n", said, 4},
		"JSON with an error": {`{"records":[],"error":{"code":"x"}}`, said, 35},
		"large":              {strings.Repeat("0123456789", 100_000), said, 1_000_000},
		"nothing announced":  {"4111111111111111", nil, -1},
	} {
		response := testkit.Answer(200, test.content, test.header...)
		_, d, err := download(t, testkit.Answer(503, ""), func(req *http.Request) (*http.Response, error) {
			resp, err := response(req)
			resp.ContentLength = test.length
			return resp, err
		})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		want := http.Header{}
		for i := 0; i < len(test.header); i += 2 {
			want.Set(test.header[i], test.header[i+1])
		}
		if d.ContentType != want.Get("Content-Type") || d.ETag != want.Get("ETag") || d.LastModified != want.Get("Last-Modified") || d.RequestID != want.Get("X-Request-Id") ||
			d.Header().Get("X-Quota-Left") != want.Get("X-Quota-Left") || d.Length != test.length || d.Attempts != 2 {
			t.Errorf("%s: %q, %q, %q, request id %q, header %v, %d bytes, %d attempts", name, d.ContentType, d.ETag, d.LastModified, d.RequestID, d.Header(), d.Length, d.Attempts)
		}
		if got, err := io.ReadAll(d); err != nil || string(got) != test.content {
			t.Errorf("%s: read %d bytes, %v", name, len(got), err)
		}
		if n, err := d.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("%s: after the end: %d, %v", name, n, err)
		}
		testkit.NoLeak(t, d, "canary", "4111111111111111")
		testkit.NoLeak(t, *d, "canary", "4111111111111111")
		if got := testkit.Printed(d)["%v"]; test.length < 0 && got != "download of -1 bytes" {
			t.Errorf("prints %q", got)
		}
	}
	if header := new(updater.Download).Header(); header != nil {
		t.Errorf("the zero value has the header %v", header)
	}
}

// TestWriteTo: content is written in full pieces, and the writer's errors are returned as
// they are.
func TestWriteTo(t *testing.T) {
	content := sample(1_000_000)
	fake := fakeJob(t, updatertest.Job{Content: bytes.NewReader(content)}, updatertest.Fault{Truncate: 300_000})
	download := open(t, t.Context(), fake.Client(updater.WithRetryWait(0, 0)))
	var w pieces
	n, err := io.Copy(&w, download)
	if err != nil || n != int64(len(content)) || !bytes.Equal(bytes.Join(w, nil), content) || download.Resumes != 1 {
		t.Errorf("%d bytes, %d resumes, %v", n, download.Resumes, err)
	}
	if len(w) != 4 || len(w[0]) != 256<<10 {
		t.Errorf("%d writes, the first of %d bytes", len(w), len(w[0]))
	}

	fake.Script(updatertest.Fault{Truncate: 300_000, Header: http.Header{"Etag": nil}})
	download = open(t, t.Context(), fake.Client(updater.WithRetryWait(0, 0)))
	w = nil
	n, err = download.WriteTo(&w)
	if !errors.Is(err, updater.ErrBadResponse) || n != 300_000 || !bytes.Equal(bytes.Join(w, nil), content[:n]) {
		t.Errorf("cut off: %d bytes, %v", n, err)
	}

	full := errors.New("full")
	download = open(t, t.Context(), fake.Client())
	if n, err := download.WriteTo(writerFunc(func(p []byte) (int, error) { return 7, full })); n != 7 || err != full {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := download.WriteTo(writerFunc(func(p []byte) (int, error) { return 1, nil })); n != 1 || err != io.ErrShortWrite {
		t.Errorf("%d, %v", n, err)
	}
}
