package faults

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/carddata/carddata-go/updater"
)

// files are calls of DownloadFile to one path, until one has succeeded.
type files struct {
	calls    []patience
	parallel int
}

func drawFiles(c chance, _ int) workload {
	f := files{parallel: pick(c, 0, 0, 3)}
	for range 1 + c.IntN(3) {
		p := drawPatience(c)
		if p.deadline == 0 {
			p.deadline = 10 * time.Minute
		}
		f.calls = append(f.calls, p)
	}
	return f
}

func (f files) play(w *world) {
	const before = "what was there before"
	client, err := updater.NewClient(baseURL, "merchant-7", w.token(), w.options()...)
	if !w.must(err) {
		return
	}
	dir, err := os.MkdirTemp("", "faults-")
	if !w.must(err) {
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "result.csv")
	if !w.must(os.WriteFile(path, []byte(before), 0o600)) {
		return
	}
	for i, p := range f.calls {
		ctx, c, stop := w.call(name("file", i), p, 0)
		c.concurrency = max(1, f.parallel)
		c.beginnings = 3 // of the rest, of the whole if that is gone, and again if it changes
		const job = "job 4"
		file, err := client.DownloadFile(ctx, job, path, updater.FileOptions{Parallel: f.parallel})
		stop()
		attempts := attemptsOfDownload(err)
		if err == nil {
			attempts = file.Attempts
		}
		c.returned(err, attempts)
		content, failed := os.ReadFile(path)
		if !w.must(failed) {
			return
		}
		switch {
		case err == nil && (!isContent(job, content) || file.Size != int64(len(content)) || file.SHA256 != fmt.Sprintf("%x", sha256.Sum256(content))):
			w.violate(wrongBytes, "%s: a file of %d bytes that is no version of the content", c, len(content))
		case err == nil:
			w.count("file complete")
			return
		case string(content) != before:
			w.violate(wrongBytes, "%s: failed, and left a file of %d bytes", c, len(content))
		default:
			w.count("file failed")
			checkDownloadError(c, err)
		}
	}
}
