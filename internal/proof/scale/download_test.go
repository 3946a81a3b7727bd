package scale

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/updater"
)

// A fileJob is one download to a file, run in a process of its own so that its
// memory can be told.
type fileJob struct {
	URL, Path string
}

type fileReport struct {
	File    updater.File
	PeakMiB int
}

func (job *fileJob) run() any {
	client, err := updater.NewClient(job.URL, "merchant", updater.StaticToken("token"), updater.WithRetryWait(0, 0))
	if err != nil {
		panic(err)
	}
	file, err := client.DownloadFile(context.Background(), "big", job.Path, updater.FileOptions{})
	if err != nil {
		panic(err)
	}
	return fileReport{*file, peakMiB()}
}

// TestDownloadOverABrokenLink: a content of any size arrives whole over
// connections that all break, for next to no more bytes, and in the same memory.
func TestDownloadOverABrokenLink(t *testing.T) {
	testkit.Long(t)
	type download struct {
		size, cut int64
	}
	downloads := []download{{64 << 20, 3_200_000}}
	if *full {
		downloads = []download{{1 << 30, 50_000_000}, {1 << 30, 5_000_000}, {10 << 30, 50_000_000}}
	}
	for _, test := range downloads {
		fake := sandbox.NewFake(t, sandbox.Updater)
		fake.SetJob("big", sandbox.Job{Content: sandbox.Synthetic(sandbox.CSV, test.size), ContentType: "text/csv"})
		fake.ScriptFunc(func(sandbox.Request) sandbox.Fault { return sandbox.Fault{Truncate: int(test.cut)} })
		path := filepath.Join(t.TempDir(), "result")
		var report fileReport
		inChild(t, &fileJob{URL: fake.URL(), Path: path}, &report)
		var sent int64
		requests := fake.Requests()
		for _, r := range requests {
			sent += r.Sent
		}
		t.Logf("%d bytes cut every %d: %d requests, %d resumes, %.4f times the bytes, peak %d MiB",
			test.size, test.cut, len(requests), report.File.Resumes, float64(sent)/float64(test.size), report.PeakMiB)
		if want := hashOf(t, sandbox.Synthetic(sandbox.CSV, test.size)); report.File.SHA256 != want || hashOfFile(t, path) != want {
			t.Errorf("%d bytes arrived, and are others", report.File.Size)
		}
		if float64(sent) > 1.02*float64(test.size) {
			t.Errorf("%d bytes sent for %d", sent, test.size)
		}
		if report.PeakMiB >= 32 && !racing {
			t.Errorf("peak memory %d MiB", report.PeakMiB)
		}
		if report.File.Resumes == 0 {
			t.Error("nothing broke")
		}
		os.Remove(path)
	}
}

func hashOfFile(t *testing.T, path string) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	return hashOf(t, file)
}

func hashOf(t *testing.T, r io.Reader) string {
	t.Helper()
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
