package updater_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/internal/testkit"
	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

func TestDownloadContentAndMetadata(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "bytes": "\x00\xff\r\n", "JSON with an error": `{"error":{"code":"x"},"records":[]}`, "large": strings.Repeat("0123456789", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			response := testkit.Answer(200, content, "Content-Type", "text/csv; charset=utf-8", "ETag", `"v1"`, "Last-Modified", "Fri, 20 Nov 2026 08:00:00 GMT", "X-Request-Id", "req-7")
			_, d, err := download(t, testkit.Answer(503, ""), func(req *http.Request) (*http.Response, error) {
				resp, err := response(req)
				resp.ContentLength = int64(len(content))
				return resp, err
			})
			if err != nil {
				t.Fatal(err)
			}
			if d.ContentType != "text/csv; charset=utf-8" || d.Length != int64(len(content)) || d.ETag != `"v1"` ||
				d.LastModified != "Fri, 20 Nov 2026 08:00:00 GMT" || d.RequestID != "req-7" || d.Attempts != 2 {
				t.Errorf("%q, %d bytes, %q, %q, request id %q, %d attempts", d.ContentType, d.Length, d.ETag, d.LastModified, d.RequestID, d.Attempts)
			}
			got, err := io.ReadAll(d)
			if err != nil || string(got) != content {
				t.Errorf("read %d bytes, %v", len(got), err)
			}
			if n, err := d.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("after the end: %d, %v", n, err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDownloadOfUnannouncedLength(t *testing.T) {
	_, d, err := download(t, func(req *http.Request) (*http.Response, error) {
		resp, err := testkit.Answer(200, "content")(req)
		resp.Body = body{resp.Body, func() error { return io.ErrClosedPipe }}
		return resp, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != io.ErrClosedPipe {
			t.Errorf("closed: %v", err)
		}
	}()
	if d.Length != -1 || d.ContentType != "" || d.ETag != "" || d.LastModified != "" || d.RequestID != "" {
		t.Errorf("%d bytes, %q, %q, %q, %q", d.Length, d.ContentType, d.ETag, d.LastModified, d.RequestID)
	}
	if got := fmt.Sprint(d); got != "download of -1 bytes" {
		t.Errorf("prints %q", got)
	}
}

// TestReadErrors: what ends the reading tells of its download. What else can end it is
// proved by internal/transport and internal/conformance/matrix.
func TestReadErrors(t *testing.T) {
	reset := errors.New("reset at canary")
	longer := func(req *http.Request) (*http.Response, error) {
		resp, err := testkit.Answer(200, "canary")(req)
		resp.ContentLength = 0
		return resp, err
	}
	for says, test := range map[string]struct {
		response func(*http.Request) (*http.Response, error)
		content  string
		is       error
	}{
		"cut off":               {testkit.Broken(200, "4111111111111111", reset), "4111111111111111", reset},
		"longer than announced": {longer, "", updater.ErrBadResponse},
	} {
		mock, d, err := download(t, func(req *http.Request) (*http.Response, error) {
			resp, err := test.response(req)
			resp.Header.Set("X-Request-Id", "req-7")
			return resp, err
		})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		content, err := io.ReadAll(d)
		e, ok := err.(*updater.Error)
		if !ok || string(content) != test.content || !errors.Is(e, updater.ErrBadResponse) || !errors.Is(e, test.is) || errors.Is(e, updater.ErrTimeout) || !strings.Contains(e.Error(), says) {
			t.Fatalf("%s: %q, and a %T: %v", says, content, err, err)
		}
		if e.Operation != "download" || e.StatusCode != 200 || e.RequestID != "req-7" || e.Attempts != 1 || len(mock.Requests()) != 1 {
			t.Errorf("%v: operation %q, status %d, request id %q, %d attempts", e, e.Operation, e.StatusCode, e.RequestID, e.Attempts)
		}
		testkit.NoLeak(t, e, "canary", "4111111111111111")
		if n, err := d.Read(make([]byte, 1)); n != 0 || err == nil || err == io.EOF {
			t.Errorf("after the error: %d, %v", n, err)
		}
	}
}

// TestUnusualContent: content that is encoded, or served as HTML, is refused by an
// error that names the option which accepts it, and by that option taken as it comes.
func TestUnusualContent(t *testing.T) {
	content := sample(1000)
	for _, test := range []struct {
		name, value, says string
		accept            updater.Option
	}{
		{"Content-Encoding", "gzip", "WithEncodedContent accepts it", updater.WithEncodedContent()},
		{"Content-Encoding", "X-Secret", "WithEncodedContent accepts it", updater.WithEncodedContent()},
		{"Content-Type", "text/html", "WithHTMLContent accepts it", updater.WithHTMLContent()},
		{"Content-Type", "Application/XHTML+xml; charset=utf-8", "WithHTMLContent accepts it", updater.WithHTMLContent()},
	} {
		unusual := updatertest.Fault{Header: http.Header{test.name: {test.value}}}
		cut := updatertest.Fault{Header: unusual.Header, Truncate: 400, Chunked: true}
		fake := fakeJob(t, updatertest.JobContent{Content: bytes.NewReader(content), ETag: new(`"v1"`)})
		path := target(t)

		fake.Script(unusual, unusual)
		_, err := fake.Client().Download(t.Context(), "7")
		_, errFile := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{})
		for _, err := range []error{err, errFile} {
			if failed, ok := err.(*updater.Error); !ok || failed.StatusCode != 200 || !errors.Is(err, updater.ErrBadResponse) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: %v", test.value, err)
			}
			testkit.NoLeak(t, err, "Secret", string(content[:20]))
		}

		fake.Script(updatertest.Fault{Status: 404, Body: "<p", Header: unusual.Header})
		if _, err := fake.Client().Download(t.Context(), "7"); err == nil || strings.Contains(err.Error(), "accepts it") {
			t.Errorf("a 404 with %s: %v", test.value, err)
		}

		fake.Script(cut, unusual, cut, unusual)
		client := fake.Client(test.accept, updater.WithRetryWait(0, 0))
		download := open(t, t.Context(), client)
		got, err := io.ReadAll(download)
		if err != nil || !bytes.Equal(got, content) || download.Resumes != 1 {
			t.Errorf("%s: %d bytes, %v", test.value, len(got), err)
		}
		file, err := client.DownloadFile(t.Context(), "7", path, updater.FileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		holds(t, path, content)
		encoding := ""
		if test.name == "Content-Encoding" {
			encoding = test.value
		}
		if download.ContentEncoding != encoding || file.ContentEncoding != encoding {
			t.Errorf("%s: %q, %q", test.value, download.ContentEncoding, file.ContentEncoding)
		}

		// A part that is not as the beginning was is of another content.
		fake.Script(updatertest.Fault{Truncate: 400, Chunked: true}, unusual)
		if download, err = client.Download(t.Context(), "7"); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(download); test.name == "Content-Encoding" && (len(got) != 400 || !errors.Is(err, updater.ErrChanged)) {
			t.Errorf("%s of the rest: %d bytes, %v", test.value, len(got), err)
		}
	}
}
