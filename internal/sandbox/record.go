package sandbox

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A Request is a request that arrived.
type Request struct {
	Time   time.Time
	Method string
	// Path is the escaped path, as it arrived.
	Path string
	// Header has the credential in Authorization replaced by stars.
	Header http.Header
	// Body is empty when the script's fault is Drop without Process, and ends at 1 MiB.
	Body []byte
	// Status is the status of the response, 0 while there is none.
	Status int
	// Sent is how many bytes of the response's body were sent so far.
	Sent int64
}

func (r Request) clone() Request {
	r.Header, r.Body = r.Header.Clone(), bytes.Clone(r.Body)
	return r
}

func (r Request) carries(text string) bool {
	quoted, _ := json.Marshal(text)
	return bytes.Contains(r.Body, quoted) || slices.Contains(strings.Split(r.Path, "/"), url.PathEscape(text))
}

// Requests returns copies of the latest requests of area in order of arrival.
// Requests with a path that belongs to no area are under "".
func (e *Engine) Requests(area Area) []Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []Request
	for _, req := range e.arrived[area] {
		all = append(all, req.clone())
	}
	return all
}

// RequestCount reports how many requests of area [Engine.Requests] has.
func (e *Engine) RequestCount(area Area) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.arrived[area])
}

// Retain sets how many requests per area and how many refunds e keeps, so that
// a long run holds bounded memory. The default is 10,000. Set it before the
// first request.
func (e *Engine) Retain(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.retain = max(n, 1)
}

func redact(h http.Header) http.Header {
	h = h.Clone()
	for i, v := range h["Authorization"] {
		scheme, _, found := strings.Cut(v, " ")
		if !found {
			scheme = ""
		}
		h["Authorization"][i] = strings.TrimSpace(scheme + " ***")
	}
	return h
}

// latest adds v to values and returns the last ones of them.
func latest[T any](values []T, v T, limit int) []T {
	values = append(values, v)
	return values[max(0, len(values)-limit):] // the next append that grows it drops the others
}
