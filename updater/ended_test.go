package updater_test

import (
	"context"
	"errors"
	"io"
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
