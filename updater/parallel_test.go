package updater_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

func TestParallel(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		name     string
		size     int
		job      updatertest.JobContent
		faults   []updatertest.Fault
		requests int
		resumes  int
	}{
		{name: "several segments", size: 30 * mib, requests: 5},
		{name: "segments of an odd length", size: 9*mib + 1, requests: 5},
		{name: "small segments", size: 3 * mib, requests: 3},
		{name: "smaller than the first request", size: mib, requests: 1},
		{name: "as small as can be", size: 1, requests: 1},
		{name: "nothing", size: 0, requests: 1},
		{name: "no tag", size: 9 * mib, job: updatertest.JobContent{ETag: new("")}, requests: 2},
		{name: "weak tag and a date", size: 9 * mib, job: updatertest.JobContent{ETag: new(`W/"1"`), LastModified: time.Unix(1e9, 0)}, requests: 2},
		{name: "no ranges", size: 9 * mib, job: updatertest.JobContent{NoRanges: true}, requests: 1},
		{name: "another part first", size: 9 * mib, faults: []updatertest.Fault{{Range: "bytes=1-2"}}, requests: 2},
		{name: "broken segments", size: 9 * mib, faults: []updatertest.Fault{{Truncate: 5000}, {Truncate: 1000}, {Truncate: -1}, {Truncate: 17}, {Truncate: 1000}}, requests: 10, resumes: 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			content := sample(test.size)
			test.job.Content = bytes.NewReader(content)
			fake := fakeJob(t, test.job, test.faults...)
			path := target(t)
			var running atomic.Int32
			last := updater.FileProgress{}
			file, err := fake.Client(updater.WithRetryWait(0, 0)).DownloadFile(t.Context(), "7", path, updater.FileOptions{Parallel: 4, Progress: func(p updater.FileProgress) {
				if running.Add(1) > 1 || p.Bytes <= last.Bytes || p.Resumes < last.Resumes {
					t.Errorf("progress %v after %v", p, last)
				}
				last = p
				running.Add(-1)
			}})
			if err != nil {
				t.Fatalf("%v, %q", err, ranges(fake))
			}
			holds(t, path, content)
			if file.Size != int64(test.size) || file.SHA256 != hashOf(content) || !file.Verified || file.Resumes != test.resumes || file.Attempts != test.requests {
				t.Errorf("%+v", show(file))
			}
			if n := len(fake.Requests()); n != test.requests {
				t.Errorf("%d requests: %q", n, ranges(fake))
			}
			if sent := sent(fake.Requests()); test.faults == nil && test.job.ETag == nil && sent != int64(test.size) {
				t.Errorf("%d bytes sent of %d", sent, test.size)
			}
			if last.Bytes != file.Size {
				t.Errorf("progress ended with %v", last)
			}
			if names := beside(t, path); !slices.Equal(names, []string{"result.csv"}) {
				t.Errorf("in the directory: %q", names)
			}
		})
	}
}

// sent is how many bytes of content the service sent.
func sent(requests []updatertest.Request) (sum int64) {
	for _, r := range requests {
		sum += r.Sent
	}
	return sum
}

// meeting lets the first request through, and those behind it when as many as n
// requests in all have come.
func meeting(n int32) limiterFunc {
	var came atomic.Int32
	all := make(chan struct{})
	return func(ctx context.Context) error {
		switch i := came.Add(1); {
		case i == 1:
			return nil
		case i == n:
			close(all)
		}
		select {
		case <-all:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// TestParallelIsAtOnce: as many requests are open as were asked for.
func TestParallelIsAtOnce(t *testing.T) {
	fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(40 << 20)})
	limiter := meeting(5) // each worker of four has one, the first its second
	path := target(t)
	if _, err := fake.Client(updater.WithLimiter(limiter)).DownloadFile(t.Context(), "7", path, updater.FileOptions{Parallel: 4}); err != nil {
		t.Fatal(err)
	}
	holds(t, path, sample(40<<20))
}

// TestParallelChanged: parts of two versions are never mixed.
func TestParallelChanged(t *testing.T) {
	const size = 9 << 20
	old, changed := sample(size), bytes.ToUpper(sample(size))
	fake := fakeJob(t, updatertest.JobContent{Content: bytes.NewReader(old), ETag: new(`"1"`)})
	path := target(t)
	change := sync.OnceFunc(func() {
		fake.SetJobContent("7", updatertest.JobContent{Content: bytes.NewReader(changed), ETag: new(`"2"`)})
	})
	var requests atomic.Int32
	limiter := limiterFunc(func(context.Context) error {
		if requests.Add(1) == 3 {
			change()
		}
		return nil
	})
	file, err := fake.Client(updater.WithLimiter(limiter)).DownloadFile(t.Context(), "7", path, updater.FileOptions{Parallel: 2})
	if err != nil || file.ETag != `"2"` || file.ResumedBytes != 0 {
		t.Errorf("%v, %v", file, err)
	}
	holds(t, path, changed)
}

// TestParallelFails: the failure of one segment ends the others.
func TestParallelFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := updatertest.Fault{BodyDelay: 20 * time.Second}
		fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(9 << 20)}, updatertest.Fault{}, slow, updatertest.Fault{Status: 404}, slow, slow)
		began := time.Now()
		_, err := fake.Client().DownloadFile(t.Context(), "7", target(t), updater.FileOptions{Parallel: 4})
		if !errors.Is(err, updater.ErrNotFound) || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestParallelContinues: a parallel download that ended early is continued from
// its first gap, by parallel requests or by one.
func TestParallelContinues(t *testing.T) {
	const size = 40 << 20
	content := sample(size)
	for _, next := range []int{4, 0} {
		fake := fakeJob(t, updatertest.JobContent{Content: bytes.NewReader(content)})
		path := target(t)
		ctx, cancel := context.WithCancel(t.Context())
		limiter := meeting(4) // the worker of the first segment comes again when that is complete
		_, err := fake.Client(updater.WithLimiter(limiter)).DownloadFile(ctx, "7", path, updater.FileOptions{Parallel: 3, Progress: func(p updater.FileProgress) {
			if p.Bytes > size/2 {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "canceled by the caller") {
			t.Errorf("%v", err)
		}
		if got, _ := os.ReadFile(path); string(got) != "old" {
			t.Errorf("the path holds %d bytes", len(got))
		}
		before := len(fake.Requests())
		file, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{Parallel: next})
		if err != nil || file.ResumedBytes < 1<<20-1 || file.SHA256 != hashOf(content) {
			t.Errorf("%+v, %v", show(file), err)
		}
		holds(t, path, content)
		if more := sent(fake.Requests()[before:]); more != size-file.ResumedBytes {
			t.Errorf("%d bytes sent, %d were missing", more, size-file.ResumedBytes)
		}
		cancel()
	}
}

// TestContinuedInParallel: what one stream left is continued by several.
func TestContinuedInParallel(t *testing.T) {
	const size, left = 20 << 20, 6 << 20
	fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(size)})
	path := target(t)
	interrupt(t, fake, path, left, updater.FileOptions{})
	file, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{Parallel: 4})
	if err != nil || file.ResumedBytes != left-1 || file.SHA256 != hashOf(sample(size)) {
		t.Errorf("%+v, %v", show(file), err)
	}
	holds(t, path, sample(size))
}
