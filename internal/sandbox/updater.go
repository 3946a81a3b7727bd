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

// A Job is what a download gets.
type Job struct {
	// Content must not change after [Engine.SetJob]. nil is empty. It is read as
	// it is sent, and never as a whole.
	Content interface {
		io.ReaderAt
		Size() int64
	}
	// ContentType is detected from the content when empty.
	ContentType string
	// Merchant is the only one who gets this, ahead of what every merchant gets
	// under the same id; "" is every merchant.
	Merchant string
	// ETag is sent as it is, with its quotes; one that is empty is not sent. nil
	// stands for a strong one, made of the size and the first MiB.
	ETag *string
	// LastModified is not sent when zero.
	LastModified time.Time
	// NoRanges ignores Range, and does not offer it.
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
	h := e.like()
	j, ok := e.job(r.Header.Get("X-Merchant-Id"), id)
	switch {
	case ok:
	case id == PendingJobID && h.pending.status > 0:
		return failure(h.pending.status, h.pending.code, "the result of the job is not ready")
	case h.missing.status > 0:
		return failure(h.missing.status, h.missing.code, "no such job")
	default:
		return failure(http.StatusNotFound, "job_not_found", "no such job")
	}
	a := response{
		contentType: j.ContentType,
		header:      j.header.Clone(),
		content:     io.NewSectionReader(j.Content, 0, j.Content.Size()),
		modified:    j.LastModified,
		noRanges:    j.NoRanges,
	}
	h.result(&a)
	return a
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
