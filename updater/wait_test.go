package updater_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
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
	return e.StatusCode == 404 || e.Code == "job_not_ready"
}

type wait struct{ interval, limit time.Duration }

func TestWait(t *testing.T) {
	type fault = updatertest.Fault
	for _, test := range []struct {
		name        string
		faults      []fault
		wait        wait
		deadline    time.Duration
		is          error // nil: success
		requests    int
		least, most time.Duration
	}{
		{"ready", nil, wait{0, time.Hour}, 0, nil, 1, 0, 0},
		{"ready later", []fault{{Status: 404}, {Status: 202}}, wait{0, time.Hour}, 0, nil, 3, time.Minute, 72 * time.Second},
		{"own interval", []fault{{Status: 404}, {Status: 404}}, wait{time.Second, time.Hour}, 0, nil, 3, 2 * time.Second, 2400 * time.Millisecond},
		{"the service names a wait", []fault{{Status: 404, RetryAfter: 10 * time.Minute}}, wait{0, time.Hour}, 0, nil, 2, 10 * time.Minute, 12 * time.Minute},
		{"an error object names a wait", []fault{{Status: 200, Body: new(`{"error":{"code":"job_not_ready"}}`), RetryAfter: 10 * time.Minute}}, wait{0, time.Hour}, 0, nil, 2, 10 * time.Minute, 12 * time.Minute},
		{"a shorter wait than the interval", []fault{{Status: 404, RetryAfter: time.Second}}, wait{0, time.Hour}, 0, nil, 2, 30 * time.Second, 36 * time.Second},
		{"another failure", []fault{{Status: 404}, {Status: 403}}, wait{0, time.Hour}, 0, updater.ErrForbidden, 2, 30 * time.Second, 36 * time.Second},
		{"an outage while it waits", slices.Concat(many(404)[:1], many(503)[:4], slices.Repeat([]fault{{Drop: true}}, 4)), wait{0, time.Hour}, 0, nil, 10, 90 * time.Second, 112 * time.Second},
		{"an outage without end", slices.Concat(many(404)[:1], many(503)), wait{time.Minute, 5 * time.Minute}, 0, updater.ErrServer, 17, 4 * time.Minute, 5 * time.Minute},
		{"an outage at first", many(503), wait{0, time.Hour}, 0, updater.ErrServer, 4, 0, 2 * time.Second},
		{"not within the time", many(404), wait{time.Minute, 5 * time.Minute}, 0, updater.ErrNotReady, 5, 4 * time.Minute, 5 * time.Minute},
		{"less than an interval asks once", many(404), wait{2, 1}, 0, updater.ErrNotReady, 1, 0, 0},
		{"an interval for ever", many(404), wait{math.MaxInt64, time.Hour}, 0, updater.ErrNotReady, 1, 0, 0},
		{"not within the deadline", many(404), wait{time.Minute, time.Hour}, 90 * time.Second, updater.ErrNotReady, 2, time.Minute, 72 * time.Second},
	} {
		bubble(t, test.name, func(t *testing.T) {
			fake := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000)}, test.faults...)
			ctx := t.Context()
			if test.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, test.deadline)
				defer cancel()
			}
			began := time.Now()
			download, err := fake.Client(updater.WithNotReady(notReady)).Download(ctx, "7", updater.WithWait(test.wait.interval, test.wait.limit))
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
			failed, ok := err.(*updater.Error)
			if !errors.Is(err, test.is) || !ok || failed.StatusCode == 0 || failed.Code == "" {
				t.Errorf("%v, want %v and the last response", err, test.is)
			}
			if isNotReady := test.is == updater.ErrNotReady; errors.Is(err, updater.ErrNotReady) != isNotReady || isNotReady && failed.Attempts != test.requests {
				t.Errorf("%v, %d attempts", err, failed.Attempts)
			}
		})
	}
}

func many(status int) []updatertest.Fault {
	return slices.Repeat([]updatertest.Fault{{Status: status}}, 100)
}

// TestNotReady: without an option 202 and 204 mean that the job is not ready. Everything else
// means it only if WithNotReady says so, for streams, for files and in the log. It is not
// retried.
func TestNotReady(t *testing.T) {
	coded := updatertest.Fault{Status: 409, Body: new(`{"error":{"code":"job_not_ready"}}`)}
	for _, test := range []struct {
		fault          updatertest.Fault
		opts           []updater.Option
		condition      string
		requests, wait int // the wait in seconds
	}{
		{fault: updatertest.Fault{Status: 202}, condition: "not_ready", requests: 1},
		{fault: updatertest.Fault{Status: 202, Body: new(""), RetryAfter: time.Minute}, condition: "not_ready", requests: 1, wait: 60},
		{fault: updatertest.Fault{Status: 204, Body: new("")}, condition: "not_ready", requests: 1},
		{fault: updatertest.Fault{Status: 203}, condition: "bad_response", requests: 1},
		{fault: coded, condition: "conflict", requests: 1},
		{fault: coded, opts: []updater.Option{updater.WithNotReady(notReady)}, condition: "not_ready", requests: 1},
		{fault: coded, opts: []updater.Option{updater.WithNotReady(notReady), updater.WithNotReady(nil)}, condition: "conflict", requests: 1},
		{fault: updatertest.Fault{Status: 503, Body: coded.Body, RetryAfter: 10 * time.Second}, opts: []updater.Option{updater.WithNotReady(notReady)}, condition: "not_ready", requests: 1, wait: 10},
		{fault: updatertest.Fault{Status: 503}, opts: []updater.Option{updater.WithNotReady(notReady)}, condition: "server_error", requests: 4},
		{fault: updatertest.Fault{Drop: true}, opts: []updater.Option{updater.WithNotReady(func(*updater.Error) bool { return true })}, condition: "no_response", requests: 4},
	} {
		bubble(t, fmt.Sprint(test.fault.Status, test.condition), func(t *testing.T) {
			var log bytes.Buffer
			fake, path := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000)}), target(t)
			fake.Script(slices.Repeat([]updatertest.Fault{test.fault}, 2*test.requests)...)
			client := fake.Client(append(test.opts, updater.WithLogger(debugLog(&log)))...)
			_, err := client.Download(t.Context(), "7")
			_, errFile := client.DownloadFile(t.Context(), "7", path, updater.FileOptions{})
			for _, err := range []error{err, errFile} {
				failed := err.(*updater.Error)
				isNotReady := test.condition == "not_ready"
				if failed.Condition() != test.condition || errors.Is(err, updater.ErrNotReady) != isNotReady || isNotReady && !failed.Retryable() || failed.StatusCode != test.fault.Status {
					t.Errorf("%v: %s, retryable: %v", err, failed.Condition(), failed.Retryable())
				}
				if failed.Attempts != test.requests || failed.RetryAfter != time.Duration(test.wait)*time.Second {
					t.Errorf("%d attempts, asked to wait %v", failed.Attempts, failed.RetryAfter)
				}
			}
			if n := strings.Count(log.String(), "condition="+test.condition); n < 4 {
				t.Errorf("%d conditions in\n%s", n, log.String())
			}
			holdsOld(t, path)
		})
	}
}

func TestCanceledWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeJob(t, updatertest.Job{}, many(404)...)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		began := time.Now()
		_, err := fake.Client(updater.WithNotReady(notReady), updater.WithWait(20*time.Minute, time.Hour)).Download(ctx, "7")
		if failed, ok := err.(*updater.Error); !errors.Is(err, context.Canceled) || !errors.Is(err, updater.ErrNotReady) || !ok || failed.StatusCode != 404 || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestFileWhenReady: DownloadFile holds no file and no lock while it waits for the job, so
// what another call left at the path by then is continued.
func TestFileWhenReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := target(t)
		fake := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000)}, updatertest.Fault{Status: 404}, updatertest.Fault{Status: 202})
		interrupted := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000)})
		time.AfterFunc(time.Second, func() {
			if names := beside(t, path); len(names) != 1 {
				t.Errorf("while it waits: %q", names)
			}
			if names := openFiles(filepath.Dir(path)); len(names) > 0 {
				t.Errorf("while it waits, these are open: %q", names)
			}
			interrupt(t, interrupted, path, 500)
		})
		client := fake.Client(updater.WithNotReady(notReady), updater.WithWait(0, time.Hour))
		file, err := client.DownloadFile(t.Context(), "7", path, updater.FileOptions{})
		if err != nil || file.Attempts != 3 || file.ResumedBytes != 499 {
			t.Errorf("%+v, %v", show(file), err)
		}
		holds(t, path, sample(1000))
	})
}
