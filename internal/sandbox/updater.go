package sandbox

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A Job is the response to a download.
type Job struct {
	// Content must not change after [Engine.SetJob]. Nil is empty. It is never read into
	// memory as a whole.
	Content interface {
		io.ReaderAt
		Size() int64
	}
	// ContentType is detected from the content when empty.
	ContentType string
	// Merchant limits the job to one merchant, who gets it instead of a job with the same
	// id and no merchant. "" is every merchant.
	Merchant string
	// ETag is sent as it is, with its quotes. An empty one is not sent. Nil is a strong
	// one, computed from the size and the first MiB.
	ETag *string
	// LastModified is not sent when zero.
	LastModified time.Time
	// NoRanges ignores Range, and sends no Accept-Ranges.
	NoRanges bool
}

type jobKey struct{ merchant, id string }

type job struct {
	Job
	header http.Header
}

func newJob(j Job) job {
	if j.Content == nil {
		j.Content = bytes.NewReader(nil)
	}
	if j.ETag == nil {
		h := sha256.New()
		fmt.Fprintln(h, j.Content.Size())
		io.Copy(h, io.NewSectionReader(j.Content, 0, min(j.Content.Size(), 1<<20)))
		j.ETag = new(fmt.Sprintf(`"%x"`, h.Sum(nil)))
	}
	header := make(http.Header)
	if *j.ETag != "" {
		header.Set("ETag", *j.ETag)
	}
	return job{j, header}
}

const defaultJobID = "42"

const defaultResult = `old_number,new_number,new_expiry,result
4111111111111111,4242424242424242,2031-07,number_changed
5555555555554444,,2030-11,expiry_changed
378282246310005,,,unchanged
6011111111111117,,,account_closed
`

func defaultJob() Job {
	return Job{Content: strings.NewReader(defaultResult), ContentType: "text/csv; charset=utf-8"}
}

// SetJob makes content available under jobID.
func (e *Engine) SetJob(jobID string, content Job) {
	j := newJob(content)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.jobs[jobKey{j.Merchant, jobID}] = j
}

func (e *Engine) download(r *http.Request, id string) response {
	id, err := url.PathUnescape(id)
	switch {
	case err != nil || id == "":
		return failure(http.StatusNotFound, "not_found", "no such endpoint")
	case r.Method != http.MethodGet:
		return methodNotAllowed(http.MethodGet)
	case !authorized(r):
		return unauthorized("a bearer credential is required")
	case r.Header.Get("X-Merchant-Id") == "":
		return unauthorized("x-merchant-id is required")
	}
	j, ok := e.job(r.Header.Get("X-Merchant-Id"), id)
	if !ok {
		return failure(http.StatusNotFound, "job_not_found", "no such job")
	}
	return response{
		contentType: j.ContentType,
		header:      j.header.Clone(),
		content:     io.NewSectionReader(j.Content, 0, j.Content.Size()),
		modified:    j.LastModified,
		noRanges:    j.NoRanges,
	}
}

func (e *Engine) job(merchant, id string) (job, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if j, ok := e.jobs[jobKey{merchant, id}]; ok {
		return j, true
	}
	j, ok := e.jobs[jobKey{"", id}]
	return j, ok
}
