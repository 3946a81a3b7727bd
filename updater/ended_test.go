package updater_test

import (
	"context"
	"os"
	"runtime"
	"sync/atomic"
	"testing"

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
				if got, _ := os.ReadFile(path); string(got) != "old" {
					t.Errorf("the path holds %d bytes", len(got))
				}
				file, err := client.DownloadFile(t.Context(), "7", path, updater.FileOptions{})
				if err != nil || file.SHA256 != hashOf(sample(size)) {
					t.Errorf("the next call: %v, %v", file, err)
				}
			})
		}
	}
}
