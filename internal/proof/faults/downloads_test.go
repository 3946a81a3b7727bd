package faults

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/carddata/carddata-go/updater"
)

func (w *world) download(client *updater.Client, name string, p patience, job string) error {
	p.deadline = cmp.Or(p.deadline, 10*time.Minute) // or it lasts as long as the service sends
	ctx, c, stop := w.call(name, p, 0)
	defer stop()
	var content []byte
	var attempts int
	var err error
	if !c.guard(func() {
		content, attempts, err = read(func() (*updater.Download, error) { return client.Download(ctx, job) })
	}) {
		return errThrown
	}
	c.returned(err, attempts)
	switch {
	case err == nil && !isContent(job, content):
		w.violate(wrongBytes, "%s: %d bytes that are no version of the content", c, len(content))
	case err == nil:
		w.count("download complete")
	default:
		w.count("download failed")
		checkError[*updater.Error](c, err)
	}
	return err
}

// read takes a download in.
func read(open func() (*updater.Download, error)) (content []byte, attempts int, _ error) {
	d, err := open()
	if err != nil {
		return nil, attemptsOf(err), err
	}
	defer d.Close()
	part := make([]byte, 4<<10)
	for {
		n, err := d.Read(part)
		content = append(content, part[:n]...)
		switch {
		case err == io.EOF:
			return content, d.Attempts, nil
		case err != nil:
			return content, attemptsOf(err), err
		}
	}
}

// files are calls of DownloadFile to one path, until one has succeeded.
type files []patience

func drawFiles(c chance, _ int) workload {
	var f files
	for range 1 + c.IntN(3) {
		f = append(f, drawPatience(c))
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
	p.deadline = cmp.Or(p.deadline, 10*time.Minute)
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

// contentOf is a version of the content of a job.
func contentOf(job string, version int) []byte {
	last := int(job[len(job)-1]) + version
	return contents()[last:][:[]int{0, 1, 3000, 20_000, 90_000}[last%5]]
}

var contents = sync.OnceValue(func() []byte {
	source := rand.NewChaCha8([32]byte{})
	content := make([]byte, 100_000)
	source.Read(content)
	return content
})

const versions = 12

// isContent tells whether bytes are a version of the content of a job, whole.
func isContent(job string, content []byte) bool {
	for version := range versions {
		if bytes.Equal(content, contentOf(job, version)) {
			return true
		}
	}
	return false
}

// respondDownload is the service's response to a request for a job's content.
func (s *service) respondDownload(r *http.Request, f fault) response {
	job := path.Base(path.Dir(r.URL.Path))
	s.mu.Lock()
	if f.changes && s.versions[job] < versions-1 {
		s.versions[job]++
	}
	version := s.versions[job]
	s.mu.Unlock()

	content := contentOf(job, version)
	a := response{header: http.Header{"Content-Type": {"text/csv"}}, content: bytes.NewReader(content)}
	switch tag := fmt.Sprintf(`"%x/%d"`, job, version); f.tag {
	case strong:
		a.header.Set("ETag", tag)
	case weak:
		a.header.Set("ETag", "W/"+tag)
	case dated:
		modified := s.w.began.Add(time.Duration(version-100) * time.Hour)
		a.header.Set("Last-Modified", modified.UTC().Format(http.TimeFormat))
	}
	asked := r.Header.Get("Range")
	if asked != "" {
		s.w.count("rest of a download asked for")
	}
	if asked == "" || f.span == asAsked {
		return a
	}
	from := 0
	fmt.Sscanf(asked, "bytes=%d-", &from)
	switch f.span {
	case whole:
		r.Header.Del("Range")
	case shifted:
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", from+1))
	case shortened:
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, from+10))
	case unnamed:
		return response{status: http.StatusPartialContent, header: a.header, body: content[min(from, len(content)):]}
	case notThere:
		a.header.Set("Content-Range", fmt.Sprintf("bytes */%d", len(content)))
		return response{status: http.StatusRequestedRangeNotSatisfiable, header: a.header}
	}
	return a
}
