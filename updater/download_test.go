package updater_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// TestCallbackPanics: a callback that panics does so to the caller. The path is left alone, and the
// next call works.
func TestCallbackPanics(t *testing.T) {
	path := target(t)
	client := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000)}).Client()
	func() {
		defer func() {
			if thrown := recover(); thrown != "canary" {
				t.Errorf("recovered %v", thrown)
			}
		}()
		client.DownloadFile(t.Context(), "7", path, updater.FileOptions{Progress: func(updater.FileProgress) { panic("canary") }})
	}()
	holdsOld(t, path)
	if _, err := client.DownloadFile(t.Context(), "7", path, updater.FileOptions{}); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

// A watched context is not one of package context, so everything that waits for its end needs
// a goroutine.
type watched struct {
	context.Context
	done chan struct{}
}

func (w watched) Done() <-chan struct{} { return w.done }

// TestLetsGoOfItsContext: a call that has ended leaves no goroutine that waits for its
// context.
func TestLetsGoOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000)})
		ctx := watched{t.Context(), make(chan struct{})}
		_, errFile := fake.Client().DownloadFile(ctx, "7", target(t), updater.FileOptions{})
		_, errNone := fake.Client().Download(ctx, "none")
		if errFile != nil || !errors.Is(errNone, updater.ErrNotFound) {
			t.Errorf("%v, %v", errFile, errNone)
		}
	})
}

// TestEndedByAnotherCall: the error of another call may end the context, as errgroup does it.
// It does not become the error of this call, and does not cost the part.
func TestEndedByAnotherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := &updater.Error{Operation: "other", Attempts: 7, Err: updater.ErrChanged}
		fake, path := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000)}, updatertest.Fault{Truncate: 500, Delay: 20 * time.Second}), target(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(other) })
		_, err := fake.Client().DownloadFile(ctx, "7", path, updater.FileOptions{})
		if failed, ok := err.(*updater.Error); !ok || failed.Attempts != 1 || failed.Condition() != "canceled" || other.Attempts != 7 {
			t.Errorf("%v, the other call's error: %+v", err, other)
		}
		if file, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{}); err != nil || file.ResumedBytes == 0 {
			t.Errorf("the next call: %+v, %v", show(file), err)
		}
	})
}

// TestReadAfterClose: after Close, every Read fails with os.ErrClosed and sends nothing.
func TestReadAfterClose(t *testing.T) {
	chunked := head(200, `ETag: "v1"`, "Transfer-Encoding: chunked")
	for name, response := range map[string]string{
		"whole":                    ok(whole),
		"to its end":               head(200, "Content-Length: 10") + half,
		"in the middle":            ok(half + hold),
		"broken":                   ok(half),
		"broken with the last one": chunked + "a\r\n" + half + "\r\nzzzz\r\n",
	} {
		w := newWire(t, response, part("bytes 10-19/20", rest))
		download := open(t, t.Context(), w.client(t))
		if n, err := io.ReadFull(download, make([]byte, 10)); err != nil {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
		if name == "to its end" {
			if n, err := download.Read(make([]byte, 10)); n != 0 || err != io.EOF {
				t.Errorf("%s: %d bytes, %v", name, n, err)
			}
		}
		download.Close()
		for range 2 {
			n, err := download.Read(make([]byte, 10))
			if _, own := err.(*updater.Error); n != 0 || !own || !errors.Is(err, os.ErrClosed) || w.seen.Load() != 1 {
				t.Errorf("%s: %d bytes and %v after %d requests", name, n, err, w.seen.Load())
			}
		}
	}
}

// TestEndOfARead: a Close by another goroutine, or the end of the context, ends any wait of Read.
func TestEndOfARead(t *testing.T) {
	cut := updatertest.Fault{Truncate: 10}
	for name, test := range map[string]struct {
		faults   []updatertest.Fault
		wait     time.Duration
		requests int
		read     int
	}{
		"for content":                    {[]updatertest.Fault{{Truncate: 10, Delay: 20 * time.Second}}, 0, 1, 10},
		"to resume":                      {[]updatertest.Fault{cut}, 24 * time.Hour, 1, 10},
		"to resume, the sixth in a row":  {slices.Repeat([]updatertest.Fault{cut}, 6), 0, 6, 60},
		"for the response to a resume":   {[]updatertest.Fault{cut, {Delay: 20 * time.Second}}, 0, 2, 10},
		"for the content after a resume": {[]updatertest.Fault{cut, {Truncate: -1, Delay: 20 * time.Second}}, 0, 2, 10},
	} {
		for _, want := range []error{os.ErrClosed, context.Canceled} {
			bubble(t, name+"/"+want.Error(), func(t *testing.T) {
				fake := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000)}, test.faults...)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				download := open(t, ctx, fake.Client(updater.WithRetryWait(test.wait, test.wait)))
				time.AfterFunc(time.Millisecond, func() {
					if want == os.ErrClosed {
						download.Close()
					} else {
						cancel()
					}
				})
				began := time.Now()
				got, err := io.ReadAll(download)
				if len(got) != test.read || !errors.Is(err, want) || errors.Is(err, updater.ErrBadResponse) || time.Since(began) != time.Millisecond || len(fake.Requests()) != test.requests {
					t.Errorf("%d bytes and %v after %v and %d requests", len(got), err, time.Since(began), len(fake.Requests()))
				}
			})
		}
	}
}
