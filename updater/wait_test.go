package updater_test

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

func notReady(e *updater.Error) bool {
	return e.StatusCode == 404 || e.StatusCode == 202 || e.Code == "job_not_ready"
}

func TestDownloadWhenReady(t *testing.T) {
	type fault = updatertest.Fault
	for _, test := range []struct {
		name        string
		faults      []fault
		o           updater.WaitOptions
		deadline    time.Duration
		is          []error // nil: success
		requests    int
		least, most time.Duration
	}{
		{"ready", nil, updater.WaitOptions{}, 0, nil, 1, 0, 0},
		{"ready later", []fault{{Status: 404}, {Status: 202}}, updater.WaitOptions{}, 0, nil, 3, time.Minute, 72 * time.Second},
		{"own interval", []fault{{Status: 404}, {Status: 404}}, updater.WaitOptions{Interval: time.Second}, 0, nil, 3, 2 * time.Second, 2400 * time.Millisecond},
		{"the service names a wait", []fault{{Status: 404, RetryAfter: 10 * time.Minute}}, updater.WaitOptions{}, 0, nil, 2, 10 * time.Minute, 12 * time.Minute},
		{"a 202 names a wait", []fault{{Status: 202, RetryAfter: 10 * time.Minute}}, updater.WaitOptions{}, 0, nil, 2, 10 * time.Minute, 12 * time.Minute},
		{"an error object names a wait", []fault{{Status: 200, Body: `{"error":{"code":"job_not_ready"}}`, RetryAfter: 10 * time.Minute}}, updater.WaitOptions{}, 0, nil, 2, 10 * time.Minute, 12 * time.Minute},
		{"a shorter wait than the interval", []fault{{Status: 404, RetryAfter: time.Second}}, updater.WaitOptions{}, 0, nil, 2, 30 * time.Second, 36 * time.Second},
		{"another failure", []fault{{Status: 404}, {Status: 403}}, updater.WaitOptions{}, 0, []error{updater.ErrForbidden}, 2, 30 * time.Second, 36 * time.Second},
		{"an outage while it waits", slices.Concat(many(404)[:1], many(503)[:4], slices.Repeat([]fault{{DropBefore: true}}, 4)), updater.WaitOptions{}, 0, nil, 10, 90 * time.Second, 112 * time.Second},
		{"an outage without end", slices.Concat(many(404)[:1], many(503)), updater.WaitOptions{Interval: time.Minute, MaxWait: 5 * time.Minute}, 0, []error{updater.ErrServer}, 17, 4 * time.Minute, 5 * time.Minute},
		{"an outage at first", many(503), updater.WaitOptions{}, 0, []error{updater.ErrServer}, 4, 0, 2 * time.Second},
		{"not within the time", many(404), updater.WaitOptions{Interval: time.Minute, MaxWait: 5 * time.Minute}, 0, []error{updater.ErrNotReady, updater.ErrNotFound}, 5, 4 * time.Minute, 5 * time.Minute},
		{"not within an hour", many(404), updater.WaitOptions{Interval: 25 * time.Minute}, 0, []error{updater.ErrNotReady}, 3, 50 * time.Minute, time.Hour},
		{"below zero asks once", many(404), updater.WaitOptions{Interval: 1, MaxWait: -1}, 0, []error{updater.ErrNotReady}, 1, 0, 0},
		{"an interval for ever", many(404), updater.WaitOptions{Interval: math.MaxInt64}, 0, []error{updater.ErrNotReady}, 1, 0, 0},
		{"not within the deadline", many(404), updater.WaitOptions{Interval: time.Minute}, 90 * time.Second, []error{updater.ErrNotReady, updater.ErrNotFound, context.DeadlineExceeded}, 2, time.Minute, 72 * time.Second},
	} {
		bubble(t, test.name, func(t *testing.T) {
			fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)}, test.faults...)
			ctx := t.Context()
			if test.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, test.deadline)
				defer cancel()
			}
			test.o.NotReady = notReady
			began := time.Now()
			download, err := fake.Client().DownloadWhenReady(ctx, "7", test.o)
			if took := time.Since(began); took < test.least || took > test.most {
				t.Errorf("took %v, want %v to %v", took, test.least, test.most)
			}
			if n := len(fake.Requests()); n != test.requests {
				t.Errorf("%d requests, want %d", n, test.requests)
			}
			if test.is == nil {
				if err != nil {
					t.Fatal(err)
				}
				defer download.Close()
				if got, err := io.ReadAll(download); len(got) != 1000 || err != nil || download.Attempts != test.requests {
					t.Errorf("%d bytes, %v, %d attempts", len(got), err, download.Attempts)
				}
				return
			}
			for _, target := range test.is {
				if !errors.Is(err, target) {
					t.Errorf("%v does not match %q", err, target)
				}
			}
			failed, ok := err.(*updater.Error)
			if !ok || failed.StatusCode == 0 || failed.Code == "" {
				t.Errorf("the last response is not in %v", err)
			}
			if errors.Is(err, updater.ErrNotReady) != slices.Contains(test.is, updater.ErrNotReady) {
				t.Errorf("%v", err)
			}
			if errors.Is(err, updater.ErrNotReady) && failed.Attempts != test.requests {
				t.Errorf("%d attempts", failed.Attempts)
			}
		})
	}
}

func many(status int) (faults []updatertest.Fault) {
	for range 100 {
		faults = append(faults, updatertest.Fault{Status: status})
	}
	return faults
}

func TestCanceledWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeJob(t, updatertest.JobContent{}, many(404)...)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		began := time.Now()
		_, err := fake.Client().DownloadWhenReady(ctx, "7", updater.WaitOptions{NotReady: notReady, Interval: 20 * time.Minute})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, updater.ErrNotFound) || errors.Is(err, updater.ErrNotReady) || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestUnusableWaitOptions(t *testing.T) {
	fake := fakeJob(t, updatertest.JobContent{})
	for name, o := range map[string]updater.WaitOptions{
		"no function": {}, "negative interval": {NotReady: notReady, Interval: -1},
	} {
		if _, err := fake.Client().DownloadWhenReady(t.Context(), "7", o); !errors.Is(err, updater.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	asked := false
	_, err := fake.Client().DownloadWhenReady(t.Context(), "..", updater.WaitOptions{NotReady: func(*updater.Error) bool { asked = true; return true }})
	if !errors.Is(err, updater.ErrInvalidArgument) || asked {
		t.Errorf("%v, asked %v", err, asked)
	}
}

// TestFileWhenReady: a file waits for its job too, and holds nothing meanwhile:
// what others did at the path by then counts.
func TestFileWhenReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := target(t)
		fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)}, updatertest.Fault{Status: 404}, updatertest.Fault{Status: 202})
		interrupted := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)})
		o := updater.FileOptions{Wait: updater.WaitOptions{NotReady: notReady}}
		time.AfterFunc(time.Second, func() {
			if names := beside(t, path); len(names) != 1 {
				t.Errorf("while it waits: %q", names)
			}
			if names := openFiles(filepath.Dir(path)); len(names) > 0 {
				t.Errorf("while it waits, these are open: %q", names)
			}
			interrupt(t, interrupted, path, 500, updater.FileOptions{})
		})
		file, err := fake.Client().DownloadFile(t.Context(), "7", path, o)
		if err != nil || file.Attempts != 3 || file.ResumedBytes != 499 {
			t.Errorf("%+v, %v", show(file), err)
		}
		holds(t, path, sample(1000))
	})
}

// TestFileWhenReadyStartsOver: a download that starts over does not wait anew.
func TestFileWhenReadyStartsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := slices.Concat(many(202)[:10], []updatertest.Fault{{Truncate: 500}}, many(202))
		fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000), ETag: new(string)}, faults...)
		began := time.Now()
		o := updater.FileOptions{Wait: updater.WaitOptions{NotReady: notReady, Interval: time.Minute, MaxWait: 30 * time.Minute}}
		if _, err := fake.Client().DownloadFile(t.Context(), "7", target(t), o); !errors.Is(err, updater.ErrNotReady) {
			t.Error(err)
		}
		if took := time.Since(began); took < 25*time.Minute || took > 30*time.Minute || len(fake.Requests()) < 20 {
			t.Errorf("%d requests in %v", len(fake.Requests()), took)
		}
	})
}

// openFiles are the files in a directory that this process has open, and itself, where
// the system tells.
func openFiles(dir string) (names []string) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		if name, _ := os.Readlink("/proc/self/fd/" + entry.Name()); strings.HasPrefix(name, dir) {
			names = append(names, name)
		}
	}
	return names
}

// TestErrorObjectIsNoResult: the documented error object is a failure whatever its
// status. It takes no path, and NotReady sees its code.
func TestErrorObjectIsNoResult(t *testing.T) {
	object := func(padding int) string {
		return `{"error":{"code":"job_not_ready","message":"canary` + strings.Repeat("x", padding) + `","details":{"state":"running"}}}`
	}
	for name, test := range map[string]struct {
		body      string
		isContent bool
	}{
		"as documented":             {object(0), false},
		"with space around":         {"\n\t " + object(0) + "\r\n", false},
		"with a byte order mark":    {"\ufeff" + object(0), false},
		"without details":           {`{"error":{"code":"job_not_ready"}}`, false},
		"of 60 KiB":                 {object(60 << 10), false},
		"of more than 64 KiB":       {object(65 << 10), true},
		"one row of several":        {object(0) + "\n" + object(0), true},
		"beside a result":           {`{"result":[],"error":{"code":"job_not_ready"}}`, true},
		"that is none":              {`{"error":null}`, true},
		"that is not even complete": {object(0)[:20], true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, fault := range []updatertest.Fault{{}, {Chunked: true}, {Unframed: true}} {
				fake := fakeJob(t, updatertest.JobContent{Content: strings.NewReader(test.body)})
				fake.ScriptFunc(func(updatertest.Request) updatertest.Fault { return fault })
				path := target(t)
				client := fake.Client()
				_, errFile := client.DownloadFile(t.Context(), "7", path, updater.FileOptions{AcceptUnverified: true})
				download, err := client.Download(t.Context(), "7")
				if test.isContent {
					if err != nil || errFile != nil {
						t.Fatalf("%+v: %v, %v", fault, err, errFile)
					}
					got, err := io.ReadAll(download)
					if err != nil || string(got) != test.body {
						t.Errorf("%+v: %d bytes, %v", fault, len(got), err)
					}
					download.Close()
					holds(t, path, []byte(test.body))
					continue
				}
				for _, err := range []error{err, errFile} {
					failed, ok := err.(*updater.Error)
					if !ok || failed.StatusCode != 200 || failed.Code != "job_not_ready" || !errors.Is(err, updater.ErrBadResponse) {
						t.Errorf("%+v: %v", fault, err)
					}
				}
				holdsOld(t, path)
			}
		})
	}
}

// TestWaitsForErrorObject: a job that says in a 200 that it is not ready is waited for.
func TestWaitsForErrorObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		later := updatertest.Fault{Status: 200, Body: `{"error":{"code":"job_not_ready"}}`}
		fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)}, later, later)
		path := target(t)
		o := updater.FileOptions{Wait: updater.WaitOptions{NotReady: func(e *updater.Error) bool { return e.Code == "job_not_ready" }}}
		file, err := fake.Client().DownloadFile(t.Context(), "7", path, o)
		if err != nil || file.Attempts != 3 || file.Size != 1000 {
			t.Errorf("%v, %v", file, err)
		}
	})
}
