package faults

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
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
	client := w.downloadClient()
	path := filepath.Join(w.dir(), "result.csv")
	if err := os.WriteFile(path, []byte("what was there before"), 0o600); err != nil {
		panic(err)
	}
	for i, p := range f {
		if w.file(client, name("file", i), p, "job 4", path) == nil {
			return
		}
	}
}

func (w *world) file(client *updater.Client, name string, p patience, job, path string) error {
	ctx, c, stop := w.call(name, p, 0)
	defer stop()
	c.beginnings = 3 + w.settings.retries // of the rest, of the whole if that is gone, and again if it breaks
	before, _ := os.ReadFile(path)        // none, where there was none
	var file *updater.File
	var err error
	returned := c.guard(func() { file, err = client.DownloadFile(ctx, job, path, updater.FileOptions{}) })
	content, _ := os.ReadFile(path)
	if !returned {
		err = errThrown
	} else if err == nil {
		c.returned(nil, file.Attempts)
	} else {
		c.returned(err, attemptsOf(err))
		checkError[*updater.Error](c, err)
	}
	switch {
	case err == nil && (!isContent(job, content) || file.Size != int64(len(content)) || file.SHA256 != fmt.Sprintf("%x", sha256.Sum256(content))):
		w.violate(wrongBytes, "%s: a file of %d bytes that is no version of the content", c, len(content))
	case err == nil:
		w.count("file complete")
	case !bytes.Equal(content, before):
		w.violate(wrongBytes, "%s: failed, and left a file of %d bytes", c, len(content))
	default:
		w.count("file failed")
	}
	return err
}

// dir is a directory of the schedule's own.
func (w *world) dir() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.files == "" {
		w.files = made(os.MkdirTemp("", "faults-"))
	}
	return w.files
}
