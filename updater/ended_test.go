package updater_test

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

// TestCallbackEnds: what a callback does to its goroutine, it does to the caller's,
// and no file is there that is not whole.
func TestCallbackEnds(t *testing.T) {
	const size = 9 << 20
	for name, end := range map[string]func(){
		"panic":  func() { panic("canary") },
		"Goexit": runtime.Goexit, // as t.FailNow does
	} {
		for _, callback := range []string{"progress", "limiter", "token"} {
			t.Run(name+" of the "+callback, func(t *testing.T) {
				var calls atomic.Int32
				call := func(who string) {
					if who == callback && calls.Add(1) == 3 {
						end()
					}
				}
				fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(size)}, updatertest.Fault{Truncate: 1000}, updatertest.Fault{Truncate: 1000})
				client := fake.Client(
					updater.WithRetryWait(0, 0),
					updater.WithLimiter(limiterFunc(func(context.Context) error { call("limiter"); return nil })),
					updater.WithTokenSource(updater.TokenFunc(func(context.Context) (string, error) { call("token"); return "t", nil })))
				path := target(t)
				var thrown any
				returned := false
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					defer func() { thrown = recover() }()
					client.DownloadFile(t.Context(), "7", path, updater.FileOptions{Progress: func(updater.FileProgress) { call("progress") }})
					returned = true
				}()
				<-ended
				if returned || (thrown == "canary") != (name == "panic") {
					t.Errorf("returned %v, recovered %v", returned, thrown)
				}
				holdsOld(t, path)
				file, err := client.DownloadFile(t.Context(), "7", path, updater.FileOptions{})
				if err != nil || file.SHA256 != hashOf(sample(size)) {
					t.Errorf("the next call: %v, %v", file, err)
				}
			})
		}
	}
}

// A watched context shows who waits for its end: each does so in a goroutine.
type watched struct {
	context.Context
	done chan struct{}
}

func (w watched) Done() <-chan struct{} { return w.done }

// TestLetsGoOfItsContext: a call that has ended leaves nothing with its context, which
// may outlast it by far.
func TestLetsGoOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)})
		ctx := watched{t.Context(), make(chan struct{})}
		_, errFile := fake.Client().DownloadFile(ctx, "7", target(t), updater.FileOptions{})
		_, errNone := fake.Client().Download(ctx, "none")
		if errFile != nil || !errors.Is(errNone, updater.ErrNotFound) {
			t.Errorf("%v, %v", errFile, errNone)
		}
	})
}

// TestEndedByAnotherCall: a context that another call's error ends, as errgroup does
// it, does not make that error the download's own, and what was fetched is kept.
func TestEndedByAnotherCall(t *testing.T) {
	for name, condition := range map[string]error{"not found": updater.ErrNotFound, "changed": updater.ErrChanged} {
		synctest.Test(t, func(t *testing.T) {
			other := &updater.Error{Operation: "other", Attempts: 7, Err: condition}
			fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)}, updatertest.Fault{BodyDelay: 20 * time.Second}, updatertest.Fault{BodyDelay: 20 * time.Second})
			begin := func() context.Context {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(other) })
				return ctx
			}
			path := target(t)
			_, fileErr := fake.Client().DownloadFile(begin(), "7", path, updater.FileOptions{})
			download := open(t, begin(), fake.Client())
			_, readErr := io.ReadAll(download)
			for _, err := range []error{fileErr, readErr} {
				if failed, ok := err.(*updater.Error); !ok || failed == other || failed.Attempts != 1 || failed.Condition() != "canceled" || !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if other.Attempts != 7 {
				t.Errorf("%s: the other call's error has changed", name)
			}
			file, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{})
			if err != nil || file.ResumedBytes == 0 {
				t.Errorf("%s: the next call: %+v, %v", name, show(file), err)
			}
		})
	}
}

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
