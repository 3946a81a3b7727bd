package faults

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"sync"
	"time"
)

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
