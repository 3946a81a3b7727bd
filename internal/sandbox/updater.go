package sandbox

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
)

// A Job is the content that a download gets.
type Job struct {
	// ContentType is detected from the content when empty.
	ContentType string
	// Body must not change after [Engine.SetJob].
	Body []byte
}

type job struct {
	Job
	etag string
}

func newJob(j Job) job {
	return job{j, fmt.Sprintf(`"%x"`, sha256.Sum256(j.Body))}
}

const defaultJobID = "42"

func defaultJob() Job {
	return Job{"text/csv; charset=utf-8", []byte(`old_number,new_number,new_expiry,result
4111111111111111,4242424242424242,2031-07,number_changed
5555555555554444,,2030-11,expiry_changed
378282246310005,,,unchanged
6011111111111117,,,account_closed
`)}
}

// SetJob makes content available under jobID.
func (e *Engine) SetJob(jobID string, content Job) {
	j := newJob(content)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.jobs[jobID] = j
}

func (e *Engine) download(r *http.Request, id string) answer {
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
	e.mu.Lock()
	j, ok := e.jobs[id]
	e.mu.Unlock()
	if !ok {
		return failure(http.StatusNotFound, "job_not_found", "no such job")
	}
	return answer{
		contentType: j.ContentType,
		header:      http.Header{"Etag": {j.etag}},
		content:     bytes.NewReader(j.Body),
	}
}
