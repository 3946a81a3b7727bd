package updater_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/updater"

	"github.com/jarcoal/httpmock"
)

// A wire is a service that responds with bytes, valid or not: to each connection the next
// response, and the last one from then on. It ends the connection, unless the response ends
// in hold.
type wire struct {
	*testkit.WireServer
	seen atomic.Int32 // requests
}

// hold keeps the connection open, in silence.
const hold = "\x00hold"

func newWire(t *testing.T, responses ...string) *wire {
	w := &wire{}
	w.WireServer = testkit.ServeWire(t, func(c net.Conn) {
		response, held := strings.CutSuffix(responses[min(int(w.seen.Add(1)), len(responses))-1], hold)
		if _, err := io.WriteString(c, response); err == nil && held {
			c.Read(make([]byte, 1))
		}
	})
	return w
}

func (w *wire) client(t *testing.T, opts ...updater.Option) *updater.Client {
	t.Helper()
	client, err := updater.NewClient(w.Base, "merchant-1", updater.StaticToken("token-1"), append([]updater.Option{updater.WithRetryWait(0, 0)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

const (
	whole = "0123456789abcdefghij"
	half  = "0123456789"
	rest  = "abcdefghij"
)

// ok is a 200 with a strong ETag that announces 20 bytes and sends body.
func ok(body string, header ...string) string {
	return head(200, append(header, `ETag: "v1"`, "Content-Length: 20")...) + body
}

// part is a 206 of the same content.
func part(contentRange, body string, header ...string) string {
	return untaggedPart(contentRange, body, append(header, `ETag: "v1"`)...)
}

func untaggedPart(contentRange, body string, header ...string) string {
	return head(206, append(header, "Content-Range: "+contentRange, fmt.Sprint("Content-Length: ", len(body)))...) + body
}

// dated is the first half of a 200 that can be continued by its Last-Modified.
func dated(header string) string {
	return head(200, header, "Last-Modified: Fri, 20 Nov 2026 08:00:00 GMT", "Date: Fri, 20 Nov 2026 09:00:00 GMT", "Content-Length: 20") + half
}

func head(status int, header ...string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\n%s\r\n\r\n", status, http.StatusText(status), strings.Join(header, "\r\n"))
}

// TestHostileService: with any bytes on the wire, a reader gets the content, or its beginning
// and an error. A file is the whole content, or stays as it was.
func TestHostileService(t *testing.T) {
	const chunks = "Transfer-Encoding: chunked"
	for _, test := range []struct {
		name      string
		responses []string
		read      string
		is        error // of a stream; nil: the whole content
		requests  int
		file      bool // DownloadFile succeeds all the same, from the beginning
	}{
		{"longer than announced", []string{ok(whole + "more")}, whole, nil, 1, true},
		{"shorter than announced", []string{ok(half), part("bytes 10-19/20", rest)}, whole, nil, 2, true},
		{"shorter, of a length that is none", []string{head(200, `ETag: "v1"`) + half}, half, nil, 1, false},
		{"chunks without an end", []string{head(200, `ETag: "v1"`, chunks) + "a\r\n" + half + "\r\n", part("bytes 10-19/20", rest)}, whole, nil, 2, true},
		{"a chunk that is none", []string{head(200, `ETag: "v1"`, chunks) + "a\r\n" + half + "\r\nzz\r\n", part("bytes 10-19/20", rest)}, whole, nil, 2, true},

		{"chunks, of which only the end is missing", []string{head(200, `ETag: "v1"`, chunks) + "14\r\n" + whole + "\r\n", head(416, "Content-Range: bytes */20", "Content-Length: 0"), ok(whole)}, whole, updater.ErrChanged, 2, true},
		{"a part in chunks, of which only the end is missing", []string{ok(half), head(206, `ETag: "v1"`, "Content-Range: bytes 10-19/20", chunks) + "a\r\n" + rest + "\r\n"}, whole, nil, 2, true},

		{"another ETag", []string{ok(half), untaggedPart("bytes 10-19/20", rest, `ETag: "v2"`), ok(whole)}, half, updater.ErrChanged, 2, true},
		{"no ETag", []string{ok(half), untaggedPart("bytes 10-19/20", rest), ok(whole)}, half, updater.ErrChanged, 2, true},
		{"no weak ETag", []string{dated(`ETag: W/"v1"`), untaggedPart("bytes 10-19/20", rest), ok(whole)}, half, updater.ErrChanged, 2, true},
		{"a date, and a part without", []string{dated("X: x"), untaggedPart("bytes 10-19/20", rest), ok(whole)}, half, updater.ErrChanged, 2, true},
		{"a date, and a part with it", []string{dated("X: x"), untaggedPart("bytes 10-19/20", rest, "Last-Modified: Fri, 20 Nov 2026 08:00:00 GMT")}, whole, nil, 2, true},
		{"another Last-Modified", []string{ok(half, "Last-Modified: Fri, 20 Nov 2026 08:00:00 GMT"), part("bytes 10-19/20", rest, "Last-Modified: Fri, 20 Nov 2026 08:00:01 GMT"), ok(whole)}, half, updater.ErrChanged, 2, true},
		{"another total", []string{ok(half), part("bytes 10-19/21", rest), ok(whole)}, half, updater.ErrChanged, 2, true},
		{"200 instead of 206", []string{ok(half), head(200, `ETag: "v2"`, "Content-Length: 20") + whole, ok(whole)}, half, updater.ErrChanged, 2, true},
		{"200 of the same ETag", []string{ok(half), ok(whole)}, half, updater.ErrChanged, 2, true},
		{"200 of another date", []string{dated("X: x"), head(200, "Last-Modified: Fri, 20 Nov 2026 08:00:01 GMT", "Content-Length: 20") + whole, ok(whole)}, half, updater.ErrChanged, 2, true},
		{"416", []string{ok(half), head(416, "Retry-After: 60", "Content-Range: bytes */5", "Content-Length: 0"), ok(whole)}, half, updater.ErrChanged, 2, true},
		{"416, and a long wait", []string{ok(half), head(416, "Retry-After: 61", "Content-Range: bytes */5", "Content-Length: 0"), ok(whole)}, half, updater.ErrChanged, 2, false},
		{"200 of the same ETag for ever", []string{ok(half), ok(half)}, half, updater.ErrChanged, 2, false},
		{"changed for ever", []string{ok(half), head(200, `ETag: "v2"`, "Content-Length: 20") + half, ok(half), head(200, `ETag: "v2"`, "Content-Length: 20") + half}, half, updater.ErrChanged, 2, false},

		{"a part that was not asked for", []string{part("bytes 0-19/20", whole), ok(whole)}, "", updater.ErrBadResponse, 1, false},
		{"a part before", []string{ok(half), part("bytes 9-19/20", "9"+rest), ok(whole)}, half, updater.ErrBadResponse, 2, true},
		{"the whole as a part", []string{ok(half), part("bytes 0-19/20", whole), ok(whole)}, half, updater.ErrBadResponse, 2, true},
		{"a part after", []string{ok(half), part("bytes 11-19/20", rest[1:]), ok(whole)}, half, updater.ErrBadResponse, 2, true},
		{"a part that ends before", []string{ok(half), part("bytes 0-9/20", half), ok(whole)}, half, updater.ErrBadResponse, 2, true},
		{"a part of no total", []string{ok(half), part("bytes 10-19/*", rest)}, whole, nil, 2, true},
		{"chunks, and a part of no total", []string{head(200, `ETag: "v1"`, chunks) + "a\r\n" + half + "\r\n", part("bytes 10-19/*", rest)}, half, updater.ErrBadResponse, 2, false},
		{"a total beyond 64 bits", []string{ok(half), part("bytes 10-19/18446744073709551615", rest)}, half, updater.ErrBadResponse, 2, false},
		{"a part of another length", []string{ok(half), part("bytes 10-19/20", rest+"k")}, half, updater.ErrBadResponse, 2, false},
		{"a part in longer chunks", []string{ok(half), head(206, `ETag: "v1"`, "Content-Range: bytes 10-19/20", chunks) + "b\r\n" + rest + "k\r\n0\r\n\r\n", ok(whole)}, whole, updater.ErrChanged, 2, true},
		{"a part without a range", []string{ok(half), head(206, "Content-Length: 10") + rest}, half, updater.ErrBadResponse, 2, false},
		{"a part with two ranges", []string{ok(half), part("bytes 10-19/20", rest, "Content-Range: bytes 0-9/20")}, half, updater.ErrBadResponse, 2, false},
		{"several parts", []string{ok(half), head(206, "Content-Type: multipart/byteranges; boundary=x", "Content-Length: 100") + "\r\n--x\r\nContent-Range: bytes 10-19/20\r\n\r\n" + rest + "\r\n--x--\r\n"}, half, updater.ErrBadResponse, 2, false},

		{"gzip", []string{head(200, "Content-Encoding: gzip", "Content-Length: 2") + "\x1f\x8b"}, "", updater.ErrBadResponse, 1, false},
		{"gzip of the rest", []string{ok(half), part("bytes 10-19/20", rest, "Content-Encoding: gzip")}, half, updater.ErrBadResponse, 2, false},
		{"a page", []string{ok(half), head(200, "Content-Type: text/html", "Content-Length: 2") + "<p"}, half, updater.ErrBadResponse, 2, false},
		{"a redirect of the rest to another host", []string{ok(half), head(307, "Location: https://other.test/", "Content-Length: 0")}, half, fault.ErrRedirect, 2, false},
		{"an ETag bomb", []string{head(200, `ETag: "`+strings.Repeat("v", 60_000)+`"`, "Content-Length: 20") + half, untaggedPart("bytes 10-19/20", rest, `ETag: "`+strings.Repeat("v", 60_000)+`"`)}, whole, nil, 2, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWire(t, test.responses...)
			var content []byte
			download, err := w.client(t, updater.WithMaxRetries(1)).Download(t.Context(), "7")
			if err == nil {
				content, err = io.ReadAll(download)
				download.Close()
			}
			if string(content) != test.read || !errors.Is(err, test.is) || int(w.seen.Load()) != test.requests {
				t.Errorf("read %q and %v with %d requests", content, err, int(w.seen.Load()))
			}
			if _, own := err.(*updater.Error); err != nil && !own {
				t.Errorf("the error is a %T", err)
			}

			w = newWire(t, test.responses...)
			path := filepath.Join(t.TempDir(), "result")
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			file, err := w.client(t, updater.WithMaxRetries(1)).DownloadFile(t.Context(), "7", path, updater.FileOptions{})
			got, _ := os.ReadFile(path)
			switch {
			case !test.file:
				if err == nil || string(got) != "old" {
					t.Errorf("no error but %v, and the file holds %q", file, got)
				}
				if test.is != nil && !errors.Is(err, test.is) {
					t.Errorf("the error of the file is %v", err)
				}
			case err != nil || string(got) != whole || file.Size != 20 || file.Attempts != int(w.seen.Load()):
				t.Errorf("the file holds %q: %v", got, err)
			}
		})
	}
}

var theRest = regexp.MustCompile(`^(?i:bytes) 0*5-0*9/(0*10|\*)$`)

// FuzzResume: with any response to the request for the rest of ten bytes, the download has
// the ten bytes or fails.
func FuzzResume(f *testing.F) {
	for _, seed := range []string{
		"bytes 5-9/10", "bytes 5-9/*", "bytes 4-9/10", "bytes 5-6/10", "bytes 5-9/11", "bytes */10", "bytes 9-5/10", "bytes 5-9", "items 5-9/10",
		"bytes 5-18446744073709551625/10", "bytes -5-9/10", "bytes +5-9/10", "BYTES 05-9/10", "",
	} {
		f.Add(206, seed, `"v1"`, "", "56789")
	}
	f.Add(200, "bytes 5-9/10", `"v1"`, "", "0123456789")
	f.Add(206, "bytes 5-9/10", `"v2"`, "", "56789")
	f.Add(206, "bytes 5-9/10", `"v1"`, "Sat, 01 Jan 2000 00:00:00 GMT", "5678")
	f.Add(206, "bytes 5-9/10", ``, "multipart/byteranges; boundary=x", "56789and more")
	f.Add(206, "bytes 5-9/10", `"v1"`, "", "")
	f.Add(416, "bytes */5", `"v1"`, "", "")
	f.Fuzz(func(t *testing.T, status int, contentRange, etag, other, body string) {
		if status < 200 || status > 599 {
			t.Skip("not a response")
		}
		// A rest that never comes is requested for five minutes.
		synctest.Test(t, func(t *testing.T) {
			first := func(r *http.Request) (*http.Response, error) {
				resp, err := testkit.Broken(200, "01234", io.ErrUnexpectedEOF)(r)
				resp.ContentLength = 10
				resp.Header.Set("ETag", `"v1"`)
				return resp, err
			}
			requests, part := 0, testkit.Answer(status, body, "Content-Range", contentRange, "ETag", etag, "Content-Type", other, "Last-Modified", other)
			rest := httpmock.Responder(func(r *http.Request) (*http.Response, error) {
				if requests++; requests > 5000 { // in fake time, a flood would never end
					t.Error("a flood of requests")
					return testkit.Answer(404, "")(r)
				}
				return part(r)
			})
			_, d, err := download(t, httpmock.Responder(first), rest)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			content, err := io.ReadAll(d)
			if _, ok := errors.AsType[*updater.Error](err); err != nil && !ok {
				t.Errorf("%T: %v", err, err)
			}
			if !strings.HasPrefix(string(content), "01234") || len(content) > 10 {
				t.Errorf("%q", content)
			}
			if err == nil && (status != 206 || !theRest.MatchString(contentRange) || string(content[5:]) != body[:5] || etag != "" && etag != `"v1"`) {
				t.Errorf("%q is taken as whole", content)
			}
		})
	})
}
