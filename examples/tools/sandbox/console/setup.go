package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// Programs in any language set here what a Go test sets in a fake: items, jobs and faults.
// A reset forgets them.

// maxSetting bounds the body of a request that sets something.
const maxSetting = 16 << 20

// read returns the body of a request, or responds that it is too large.
func read(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSetting))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		fail(w, http.StatusRequestEntityTooLarge, "too_large", "the body must not have more than "+strconv.Itoa(maxSetting)+" bytes")
	}
	return body, err == nil
}

// setCard sets the item of an identifier and of all that begin with it.
func (c *Console) setCard(w http.ResponseWriter, r *http.Request) {
	body, ok := read(w, r)
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

// setJob sets the result of a job to the body. With size in the query, the result is
// made-up CSV of that size.
func (c *Console) setJob(w http.ResponseWriter, r *http.Request) {
	job := sandbox.Job{ContentType: r.Header.Get("Content-Type")}
	if query := r.URL.Query(); query.Has("size") {
		const limit = 1 << 50
		size, err := strconv.ParseInt(query.Get("size"), 10, 64)
		if err != nil || size < 0 || size > limit {
			fail(w, http.StatusBadRequest, "bad_request", "size must be a number of bytes")
			return
		}
		job.Content, job.ContentType = sandbox.Synthetic(sandbox.CSV, size), "text/csv"
	} else {
		body, ok := read(w, r)
		if !ok {
			return
		}
		job.Content = bytes.NewReader(body)
	}
	c.engine.SetJob(r.PathValue("job"), job)
	c.serveState(w, r)
}

func (c *Console) setFault(w http.ResponseWriter, r *http.Request) {
	body, ok := read(w, r)
	if !ok {
		return
	}
	set, err := readSetting(body)
	if err != nil {
		fail(w, http.StatusBadRequest, "bad_request", err.Error())
		return
	}
	c.update(func() { c.faults.set(set.complete()) })
	c.serveState(w, r)
}

// readSetting reads a rule. Details in the body win over those of the named fault. An
// error names the member.
func readSetting(body []byte) (set setting, err error) {
	set.Name = custom
	json.Unmarshal(body, &struct{ Fault *string }{&set.Name}) // an error shows below
	details, known := named[set.Name]
	if !known {
		return set, errors.New("fault has no such name")
	}
	if err := json.Unmarshal([]byte(details), &set); err != nil {
		return set, err
	}
	in := json.NewDecoder(bytes.NewReader(body))
	in.DisallowUnknownFields()
	err = in.Decode(&set)
	if of, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && of.Field != "" {
		return set, fmt.Errorf("%s has a value of another type", of.Field)
	} else if _, name, ok := strings.Cut(fmt.Sprint(err), "unknown field "); ok {
		return set, errors.New("there is no member " + text(name))
	} else if err != nil || in.More() {
		return set, errors.New("the body is not a JSON object")
	}
	return set, set.check()
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
