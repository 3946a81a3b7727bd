package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// What a Go test sets of a fake, any program sets here: results, jobs, the
// response to refunds, and a profile. A reset forgets it.

const (
	maxRule    = 64 << 10
	maxSetting = 1 << 20
	maxJob     = 16 << 20
)

// read returns the body of a request, or says that it is too large.
func read(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		fail(w, http.StatusRequestEntityTooLarge, "too_large", "the body must not have more than "+strconv.FormatInt(limit, 10)+" bytes")
		return nil, false
	}
	return body, err == nil
}

// setCard sets the item of an identifier and of all that begin with it.
func (c *Console) setCard(w http.ResponseWriter, r *http.Request) {
	body, ok := read(w, r, maxSetting)
	if !ok {
		return
	}
	if !json.Valid(body) {
		fail(w, http.StatusBadRequest, "bad_request", "the body is not the JSON of an item")
		return
	}
	c.engine.SetResult(r.PathValue("bin"), body)
	c.serveState(w, r)
}

// setJob sets the result of a job to the body, or with the query's size to as
// many bytes that are made up.
func (c *Console) setJob(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	job := sandbox.Job{Merchant: query.Get("merchant"), NoRanges: query.Get("ranges") == "false", ContentType: r.Header.Get("Content-Type")}
	if query.Has("etag") {
		job.ETag = new(query.Get("etag"))
	}
	if text := query.Get("last_modified"); text != "" {
		modified, err := time.Parse(time.RFC3339, text)
		if err != nil {
			fail(w, http.StatusBadRequest, "bad_request", "last_modified must be a time as in 2031-07-01T00:00:00Z")
			return
		}
		job.LastModified = modified
	}
	if query.Has("size") {
		const limit = 1 << 50
		size, err := strconv.ParseInt(query.Get("size"), 10, 64)
		format := sandbox.Format(query.Get("format"))
		types := map[sandbox.Format]string{"": "text/csv", sandbox.CSV: "text/csv", sandbox.NDJSON: "application/x-ndjson", sandbox.JSONArray: "application/json"}
		if err != nil || size < 0 || size > limit || types[format] == "" {
			fail(w, http.StatusBadRequest, "bad_request", "size must be a number of bytes, and format csv, ndjson or json")
			return
		}
		job.Content, job.ContentType = sandbox.Synthetic(format, size), types[format]
	} else {
		body, ok := read(w, r, maxJob)
		if !ok {
			return
		}
		job.Content = bytes.NewReader(body)
	}
	c.engine.SetJob(r.PathValue("job"), job)
	c.serveState(w, r)
}

// setRefundResponse sets the response to refunds that the interface allows.
func (c *Console) setRefundResponse(w http.ResponseWriter, r *http.Request) {
	var set struct {
		Status      int    `json:"status"`
		ContentType string `json:"content_type"`
		Body        string `json:"body"`
	}
	if !readJSON(w, r, &set, `the body is not a response, as in {"status": 202, "content_type": "application/json", "body": "{}"}`) {
		return
	}
	if set.Status < 200 || set.Status > 599 {
		fail(w, http.StatusBadRequest, "bad_request", "status must be 200 to 599")
		return
	}
	c.engine.SetRefundResponse(set.Status, set.ContentType, set.Body)
	c.serveState(w, r)
}

func (c *Console) setProfile(w http.ResponseWriter, r *http.Request) {
	body, ok := read(w, r, maxSetting)
	if !ok {
		return
	}
	p, err := sandbox.ParseProfile(body)
	if err == nil {
		err = c.engine.SetProfile(p)
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "bad_request", text(err.Error()))
		return
	}
	c.serveState(w, r)
}

func (c *Console) setFault(w http.ResponseWriter, r *http.Request) {
	var set rule
	if !readJSON(w, r, &set, `the body is not a fault, as in {"fault": "rate_limited", "next": 3}`) {
		return
	}
	err := set.check()
	if err == nil {
		c.update(func() { err = c.faults.set(set) })
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "bad_request", err.Error())
		return
	}
	c.serveState(w, r)
}

func (c *Console) removeFault(w http.ResponseWriter, r *http.Request) {
	id, _ := strconv.Atoi(r.PathValue("id"))
	found := false
	c.update(func() { found = c.faults.remove(id) })
	if !found {
		fail(w, http.StatusNotFound, "not_found", "no such fault, or no longer in force")
		return
	}
	c.serveState(w, r)
}

// readJSON wants one value with no other members than v has.
func readJSON(w http.ResponseWriter, r *http.Request, v any, usage string) bool {
	if !isJSON(r) {
		fail(w, http.StatusUnsupportedMediaType, "unsupported_media_type", "Content-Type must be application/json")
		return false
	}
	body, ok := read(w, r, maxRule)
	if !ok {
		return false
	}
	in := json.NewDecoder(bytes.NewReader(body))
	in.DisallowUnknownFields()
	if err := in.Decode(v); err != nil || in.More() {
		fail(w, http.StatusBadRequest, "bad_request", usage)
		return false
	}
	return true
}
