package updater_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

// A wire is a service that responds with bytes, valid or not: to each connection the
// next response, and the last one for good. It ends the connection, unless the
// response ends in hold.
type wire struct {
	base string
	open atomic.Int32 // bodies of responses
	bare bool         // they are not counted: net/http's own error does not come through a wrapper

	mu       sync.Mutex
	requests []*http.Request
}

// hold keeps the connection open, in silence.
const hold = "\x00hold"

func newWire(t *testing.T, responses ...string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{base: "http://" + l.Addr().String(), bare: strings.Contains(responses[len(responses)-1], "X-Bomb")}
	var running sync.WaitGroup
	ended := make(chan struct{})
	t.Cleanup(func() {
		l.Close()
		close(ended)
		running.Wait()
		if n := w.open.Load(); n != 0 {
			t.Errorf("%d responses are left open", n)
		}
	})
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				req, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				w.mu.Lock()
				n := len(w.requests)
				w.requests = append(w.requests, req)
				w.mu.Unlock()
				response, held := strings.CutSuffix(responses[min(n, len(responses)-1)], hold)
				if _, err := io.WriteString(c, response); err == nil && held {
					<-ended
				}
			})
		}
	})
	return w
}

func (w *wire) seen() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.requests)
}

type body struct {
	io.Reader
	close func() error
}

func (b body) Close() error { return b.close() }

// wrap has each response count as open until it is closed.
func (w *wire) wrap(base http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := base.RoundTrip(r)
		if err == nil {
			w.open.Add(1)
			closed := sync.OnceFunc(func() { w.open.Add(-1) })
			inner := resp.Body
			resp.Body = body{inner, func() error { closed(); return inner.Close() }}
		}
		return resp, err
	})
}

func (w *wire) client(t *testing.T, opts ...updater.Option) *updater.Client {
	t.Helper()
	if !w.bare {
		opts = append(opts, updater.WithTransport(w.wrap))
	}
	client, err := updater.NewClient(w.base, "merchant-1", updater.StaticToken("token-1"), append([]updater.Option{updater.WithRetryWait(0, 0)}, opts...)...)
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

// ok is a 200 of the content with a strong ETag, of which body is sent.
func ok(body string, header ...string) string {
	return head(200, append(header, `ETag: "v1"`, "Content-Length: 20")...) + body
}

// part is a 206 of the same content, with a body and its length.
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

// TestHostileService: whatever is on the wire, a reader gets the content, or the
// beginning of it and an error; a file is the content, or stays what it was.
func TestHostileService(t *testing.T) {
	const chunks = "Transfer-Encoding: chunked"
	elsewhere := newWire(t, ok(whole))
	for _, test := range []struct {
		name      string
		responses []string
		read      string
		is        error // of a stream; nil: the whole content
		requests  int
		file      bool // a file is had all the same, from the beginning
	}{
		{"longer than announced", []string{ok(whole + "more")}, whole, nil, 1, true},
		{"shorter than announced", []string{ok(half), part("bytes 10-19/20", rest)}, whole, nil, 2, true},
		{"shorter, time and again", []string{ok(half), head(206, `ETag: "v1"`, "Content-Range: bytes 10-19/20", "Content-Length: 10")}, half, updater.ErrBadResponse, 2, false},
		{"shorter, of a length that is none", []string{head(200, `ETag: "v1"`) + half}, half, nil, 1, false},
		{"chunks without an end", []string{head(200, `ETag: "v1"`, chunks) + "a\r\n" + half + "\r\n", part("bytes 10-19/20", rest)}, whole, nil, 2, true},
		{"a chunk that is none", []string{head(200, `ETag: "v1"`, chunks) + "a\r\n" + half + "\r\nzz\r\n", part("bytes 10-19/20", rest)}, whole, nil, 2, true},

		{"chunks, of which only the end is missing", []string{head(200, `ETag: "v1"`, chunks) + "14\r\n" + whole + "\r\n", head(416, "Content-Range: bytes */20", "Content-Length: 0")}, whole, nil, 2, true},
		{"chunks, and a longer content", []string{head(200, `ETag: "v1"`, chunks) + "a\r\n" + half + "\r\n", head(416, "Content-Range: bytes */20", "Content-Length: 0"), ok(whole)}, half, updater.ErrChanged, 2, true},
		{"chunks, and another content", []string{head(200, `ETag: "v1"`, chunks) + "a\r\n" + half + "\r\n", head(416, "Content-Range: bytes */10", `ETag: "v2"`, "Content-Length: 0"), ok(whole)}, half, updater.ErrChanged, 2, true},
		{"a part in chunks, of which only the end is missing", []string{ok(half), head(206, `ETag: "v1"`, "Content-Range: bytes 10-19/20", chunks) + "a\r\n" + rest + "\r\n"}, whole, nil, 2, true},

		{"another ETag", []string{ok(half), untaggedPart("bytes 10-19/20", rest, `ETag: "v2"`), ok(whole)}, half, updater.ErrChanged, 2, true},
		{"no ETag", []string{ok(half), untaggedPart("bytes 10-19/20", rest), ok(whole)}, half, updater.ErrChanged, 2, true},
		{"no weak ETag", []string{dated(`ETag: W/"v1"`), untaggedPart("bytes 10-19/20", rest), ok(whole)}, half, updater.ErrChanged, 2, true},
		{"a date, and a part without", []string{dated("X: x"), untaggedPart("bytes 10-19/20", rest)}, whole, nil, 2, true},
		{"another Last-Modified", []string{ok(half, "Last-Modified: Fri, 20 Nov 2026 08:00:00 GMT"), part("bytes 10-19/20", rest, "Last-Modified: Fri, 20 Nov 2026 08:00:01 GMT"), ok(whole)}, half, updater.ErrChanged, 2, true},
		{"another total", []string{ok(half), part("bytes 10-19/21", rest), ok(whole)}, half, updater.ErrChanged, 2, true},
		{"200 instead of 206", []string{ok(half), head(200, `ETag: "v2"`, "Content-Length: 20") + whole, ok(whole)}, half, updater.ErrChanged, 2, true},
		{"200 of the same ETag", []string{ok(half), ok(whole)}, half, updater.ErrNotResumable, 2, true},
		{"200 of the same ETag, and no content", []string{ok(half), head(200, `ETag: "v1"`, "Content-Length: 0"), ok(whole)}, half, updater.ErrChanged, 2, true},
		{"416", []string{ok(half), head(416, "Retry-After: 60", "Content-Range: bytes */5", "Content-Length: 0"), ok(whole)}, half, updater.ErrChanged, 2, true},
		{"416, and a long wait", []string{ok(half), head(416, "Retry-After: 61", "Content-Range: bytes */5", "Content-Length: 0"), ok(whole)}, half, updater.ErrChanged, 2, false},
		{"200 of the same ETag for ever", []string{ok(half), ok(half)}, half, updater.ErrNotResumable, 2, false},
		{"changed for ever", []string{ok(half), head(200, `ETag: "v2"`, "Content-Length: 20") + half, ok(half), head(200, `ETag: "v2"`, "Content-Length: 20") + half}, half, updater.ErrChanged, 2, false},

		{"a part that was not asked for", []string{part("bytes 0-19/20", whole), ok(whole)}, "", updater.ErrBadResponse, 1, false},
		{"the beginning again", []string{ok(half), part("bytes 0-19/20", whole)}, half, updater.ErrBadResponse, 2, false},
		{"a later part", []string{ok(half), part("bytes 11-19/20", rest[1:])}, half, updater.ErrBadResponse, 2, false},
		{"a part before", []string{ok(half), part("bytes 9-19/20", "9"+rest)}, half, updater.ErrBadResponse, 2, false},
		{"a part that ends behind the end", []string{ok(half), part("bytes 10-20/20", rest+"k")}, half, updater.ErrBadResponse, 2, false},
		{"a part of no total", []string{ok(half), part("bytes 10-19/*", rest)}, half, updater.ErrBadResponse, 2, false},
		{"a part of another length", []string{ok(half), part("bytes 10-19/20", rest+"k")}, half, updater.ErrBadResponse, 2, false},
		{"a part in longer chunks", []string{ok(half), head(206, `ETag: "v1"`, "Content-Range: bytes 10-19/20", chunks) + "b\r\n" + rest + "k\r\n0\r\n\r\n"}, whole, updater.ErrBadResponse, 2, false},
		{"a part without a range", []string{ok(half), head(206, "Content-Length: 10") + rest}, half, updater.ErrBadResponse, 2, false},
		{"a part with two ranges", []string{ok(half), part("bytes 10-19/20", rest, "Content-Range: bytes 0-9/20")}, half, updater.ErrBadResponse, 2, false},
		{"several parts", []string{ok(half), head(206, "Content-Type: multipart/byteranges; boundary=x", "Content-Length: 100") + "\r\n--x\r\nContent-Range: bytes 10-19/20\r\n\r\n" + rest + "\r\n--x--\r\n"}, half, updater.ErrBadResponse, 2, false},
		{"several parts, and a range", []string{ok(half), part("bytes 10-19/20", rest, "Content-Type: Multipart/ByteRanges; boundary=x")}, half, updater.ErrBadResponse, 2, false},

		{"gzip", []string{head(200, "Content-Encoding: gzip", "Content-Length: 2") + "\x1f\x8b"}, "", updater.ErrBadResponse, 1, false},
		{"gzip of the rest", []string{ok(half), part("bytes 10-19/20", rest, "Content-Encoding: gzip")}, half, updater.ErrBadResponse, 2, false},
		{"a page", []string{ok(half), head(200, "Content-Type: text/html", "Content-Length: 2") + "<p"}, half, updater.ErrBadResponse, 2, false},
		{"a redirect to another host", []string{head(302, "Location: "+elsewhere.base+"/", "Content-Length: 0")}, "", updater.ErrRedirect, 1, false},
		{"a redirect of the rest to another host", []string{ok(half), head(307, "Location: "+elsewhere.base+"/", "Content-Length: 0")}, half, updater.ErrRedirect, 2, false},
		{"a header bomb", []string{"HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Bomb: "+strings.Repeat("x", 1000)+"\r\n", 1000)}, "", updater.ErrBadResponse, 2, false},
		{"a header bomb before the rest", []string{ok(half), "HTTP/1.1 206 Partial Content\r\n" + strings.Repeat("X-Bomb: "+strings.Repeat("x", 1000)+"\r\n", 1000)}, half, updater.ErrBadResponse, 3, false},
		{"an ETag bomb", []string{head(200, `ETag: "`+strings.Repeat("v", 60_000)+`"`, "Content-Length: 20") + half, untaggedPart("bytes 10-19/20", rest, `ETag: "`+strings.Repeat("v", 60_000)+`"`)}, whole, nil, 2, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWire(t, test.responses...)
			var content []byte
			download, err := w.client(t, updater.WithMaxRetries(1), updater.WithResumeTimeout(1)).Download(t.Context(), "7")
			if err == nil {
				content, err = io.ReadAll(download)
				download.Close()
			}
			if string(content) != test.read || !errors.Is(err, test.is) || w.seen() != test.requests {
				t.Errorf("read %q and %v with %d requests", content, err, w.seen())
			}
			if _, own := err.(*updater.Error); err != nil && !own {
				t.Errorf("the error is a %T", err)
			}

			w = newWire(t, test.responses...)
			path := filepath.Join(t.TempDir(), "result")
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			file, err := w.client(t, updater.WithMaxRetries(1), updater.WithResumeTimeout(1)).DownloadFile(t.Context(), "7", path, updater.FileOptions{})
			got, _ := os.ReadFile(path)
			switch {
			case !test.file:
				if err == nil || string(got) != "old" {
					t.Errorf("no error but %v, and the file holds %q", file, got)
				}
				if test.is != nil && !errors.Is(err, test.is) {
					t.Errorf("the error of the file is %v", err)
				}
			case err != nil || string(got) != whole || file.Size != 20 || file.Attempts != w.seen():
				t.Errorf("the file holds %q: %v", got, err)
			}
		})
	}
	t.Cleanup(func() {
		if elsewhere.seen() > 0 {
			t.Error("a redirect led to another host")
		}
	})
}

// TestStalledWire: silence on a socket ends each stream by the attempt timeout.
func TestStalledWire(t *testing.T) {
	w := newWire(t, ok(half+hold), part("bytes 10-19/20", rest))
	client := w.client(t, updater.WithAttemptTimeout(20*time.Millisecond))
	download := open(t, t.Context(), client)
	if got, err := io.ReadAll(download); string(got) != whole || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	w = newWire(t, ok(hold), head(206, `ETag: "v1"`, "Content-Range: bytes 0-19/20", "Content-Length: 20")+hold)
	download = open(t, t.Context(), w.client(t, updater.WithAttemptTimeout(20*time.Millisecond), updater.WithResumeTimeout(1)))
	if got, err := io.ReadAll(download); len(got) > 0 || !errors.Is(err, updater.ErrTimeout) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestTrickle: a content that merely trickles is read until the context ends, and
// is continued afterwards.
func TestTrickle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)}, updatertest.Fault{BytesPerSecond: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		path := filepath.Join(t.TempDir(), "result")
		_, err := fake.Client().DownloadFile(ctx, "7", path, updater.FileOptions{})
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, updater.ErrTimeout) {
			t.Errorf("%v", err)
		}
		file, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{})
		if err != nil || file.ResumedBytes < 250 || file.ResumedBytes > 301 {
			t.Errorf("%+v, %v", file, err)
		}
		holds(t, path, sample(1000))
	})
}

// TestOverrunPart: a response longer than its range may have begun elsewhere, and
// what it brought is not built upon.
func TestOverrunPart(t *testing.T) {
	wrong := head(206, `ETag: "v1"`, "Content-Range: bytes 10-19/20", "Transfer-Encoding: chunked") + "14\r\n" + whole + "\r\n0\r\n\r\n"
	w := newWire(t, ok(half), wrong, ok(whole))
	path := filepath.Join(t.TempDir(), "result")
	client := w.client(t)
	if _, err := client.DownloadFile(t.Context(), "7", path, updater.FileOptions{}); !errors.Is(err, updater.ErrBadResponse) {
		t.Error(err)
	}
	lists(t, path)
	if file, err := client.DownloadFile(t.Context(), "7", path, updater.FileOptions{}); err != nil || w.requests[2].Header.Get("Range") != "" {
		t.Errorf("%v, %v", file, err)
	}
	holds(t, path, []byte(whole))
}
