package updater_test

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

// TestReadAfterClose: a closed download stays closed, however its stream stands.
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
			if _, own := err.(*updater.Error); n != 0 || !own || !errors.Is(err, os.ErrClosed) || w.seen() != 1 {
				t.Errorf("%s: %d bytes and %v after %d requests", name, n, err, w.seen())
			}
		}
	}
}

// TestCloseEndsARead: a Close by another goroutine ends a Read that waits, whatever
// for.
func TestCloseEndsARead(t *testing.T) {
	cut := updatertest.Fault{Truncate: 10}
	for name, test := range map[string]struct {
		faults   []updatertest.Fault
		wait     time.Duration
		requests int
	}{
		"for content":                    {[]updatertest.Fault{{BodyDelay: 20 * time.Second, DelayAfter: 10}}, 0, 1},
		"to resume":                      {[]updatertest.Fault{cut}, 24 * time.Hour, 1},
		"for the response to a resume":   {[]updatertest.Fault{cut, {HeaderDelay: 20 * time.Second}}, 0, 2},
		"for the content after a resume": {[]updatertest.Fault{cut, {BodyDelay: 20 * time.Second, DelayAfter: -1}}, 0, 2},
	} {
		bubble(t, name, func(t *testing.T) {
			fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)}, test.faults...)
			download := open(t, t.Context(), fake.Client(updater.WithRetryWait(test.wait, test.wait)))
			time.AfterFunc(time.Millisecond, func() { download.Close() })
			began := time.Now()
			got, err := io.ReadAll(download)
			if len(got) != 10 || !errors.Is(err, os.ErrClosed) || time.Since(began) != time.Millisecond || len(fake.Requests()) != test.requests {
				t.Errorf("%d bytes and %v after %v and %d requests", len(got), err, time.Since(began), len(fake.Requests()))
			}
		})
	}
}
