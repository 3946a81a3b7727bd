package faults

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/updater"
)

// files are calls of DownloadFile to one path, until one has succeeded.
type files []patience

func drawFiles(c chance, _ int) workload {
	var f files
	for range 1 + c.IntN(3) {
		p := drawPatience(c)
		if p.deadline == 0 {
			p.deadline = 10 * time.Minute
		}
		f = append(f, p)
	}
	return f
}

func (f files) play(w *world) {
	const before = "what was there before"
	client, err := updater.NewClient(baseURL, "merchant-7", w.token(), w.options()...)
	if !w.must(err) {
		return
	}
	path := filepath.Join(w.dir(), "result.csv")
	if !w.must(os.WriteFile(path, []byte(before), 0o600)) {
		return
	}
	for i, p := range f {
		ctx, c, stop := w.call(name("file", i), p, 0)
		c.beginnings = 3 + w.settings.retries // of the rest, of the whole if that is gone, and again if it breaks
		const job = "job 4"
		var file *updater.File
		var err error
		restore := w.breakPath(path)
		returned := c.guard(func() { file, err = client.DownloadFile(ctx, job, path, updater.FileOptions{}) })
		broken := restore()
		stop()
		attempts := attemptsOf(err)
		if returned && err == nil {
			attempts = file.Attempts
		}
		if returned {
			c.returned(err, attempts)
		}
		content, failed := os.ReadFile(path)
		if !w.must(failed) {
			return
		}
		switch {
		case !returned && string(content) != before:
			w.violate(wrongBytes, "%s: ended by a part of the caller's, and left a file of %d bytes", c, len(content))
		case !returned:
		case err == nil && (!isContent(job, content) || file.Size != int64(len(content)) || file.SHA256 != fmt.Sprintf("%x", sha256.Sum256(content))):
			w.violate(wrongBytes, "%s: a file of %d bytes that is no version of the content", c, len(content))
		case err == nil:
			w.count("file complete")
			return
		case string(content) != before:
			w.violate(wrongBytes, "%s: failed, and left a file of %d bytes", c, len(content))
		default:
			w.count("file failed")
			if _, ok := errors.AsType[*updater.Error](err); broken && ok {
				continue // the error of the file system has no condition
			}
			checkError[*updater.Error](c, err)
		}
	}
}

// breakPath has a directory take the path of a download at some time, or another
// directory the place of its own. What it returns puts all back, and tells whether
// it did.
func (w *world) breakPath(path string) (restore func() bool) {
	if w.parts.part != disk {
		return func() bool { return false }
	}
	c := w.chance("disk")
	dir, broken := filepath.Dir(path), false
	aside := dir + " aside"
	moves := c.percent(50)
	timer := time.AfterFunc(c.within(3*time.Second), func() {
		w.count(metPart(disk, fails))
		broken = true
		if moves {
			w.must(os.Rename(dir, aside))
			w.must(os.Mkdir(dir, 0o700))
			return
		}
		w.must(os.Rename(path, path+" aside"))
		w.must(os.Mkdir(path, 0o700))
	})
	return func() bool {
		timer.Stop()
		synctest.Wait()
		switch {
		case broken && moves:
			w.must(os.RemoveAll(dir))
			w.must(os.Rename(aside, dir))
		case broken:
			w.must(os.Remove(path))
			w.must(os.Rename(path+" aside", path))
		}
		return broken
	}
}
