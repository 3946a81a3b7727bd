package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// A state is what the sandbox does and did, in numbers.
type state struct {
	Oldest  int              `json:"oldest"`  // number of the oldest request kept
	Dropped int              `json:"dropped"` // requests that are no longer kept
	Areas   map[string]count `json:"areas"`
	Faults  []rule           `json:"faults"`
}

// A listing is the state with the requests that have changed since another.
type listing struct {
	state
	Requests []entry `json:"requests"`
}

func (c *Console) routes() {
	c.mux.HandleFunc("GET /{$}", servePage)
	c.mux.HandleFunc("GET /sandbox/state", c.serveState)
	c.mux.HandleFunc("GET /sandbox/requests", func(w http.ResponseWriter, r *http.Request) {
		list, _, _ := c.since(0)
		reply(w, list)
	})
	c.mux.HandleFunc("GET /sandbox/requests/{number}", c.serveRequest)
	c.mux.HandleFunc("GET /sandbox/requests.ndjson", c.export)
	c.mux.HandleFunc("GET /sandbox/events", c.events)
	c.mux.HandleFunc("POST /sandbox/faults", c.setFault)
	c.mux.HandleFunc("DELETE /sandbox/faults", func(w http.ResponseWriter, r *http.Request) {
		c.update(func() { c.faults = nil })
		c.serveState(w, r)
	})
	c.mux.HandleFunc("POST /sandbox/reset", func(w http.ResponseWriter, r *http.Request) {
		c.reset()
		c.serveState(w, r)
	})
	c.mux.HandleFunc("/sandbox/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, "not_found", "no such endpoint")
	})
}

func (c *Console) serveState(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	s := c.state()
	c.mu.Unlock()
	reply(w, s)
}

func (c *Console) state() state {
	s := state{Oldest: c.record.last + 1, Dropped: c.record.dropped, Areas: make(map[string]count), Faults: slices.Clone(c.faults)}
	if len(c.record.entries) > 0 {
		s.Oldest = c.record.entries[0].Number
	}
	for area, counted := range c.record.counts {
		name := string(area)
		if area == "" {
			name = "other"
		}
		s.Areas[name] = *counted
	}
	if s.Faults == nil {
		s.Faults = []rule{}
	}
	return s
}

// since returns what changed after the change with that number, the number of
// the last change, and what is closed with the next.
func (c *Console) since(change int) (listing, int, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := listing{state: c.state(), Requests: []entry{}}
	for _, e := range c.record.entries {
		if e.changed > change {
			list.Requests = append(list.Requests, *e)
		}
	}
	return list, c.record.changes, c.changed
}

func (c *Console) serveRequest(w http.ResponseWriter, r *http.Request) {
	number, _ := strconv.Atoi(r.PathValue("number"))
	c.mu.Lock()
	var found entry
	e, ok := c.record.find(number)
	if ok {
		found = *e
	}
	c.mu.Unlock()
	if !ok {
		fail(w, http.StatusNotFound, "not_found", "no such request, or no longer kept")
		return
	}
	reply(w, detail{found, found.request, found.response})
}

// export sends the record, one request to a line.
func (c *Console) export(w http.ResponseWriter, r *http.Request) {
	list, _, _ := c.since(0)
	setHeader(w, "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="sandbox.ndjson"`)
	for _, e := range list.Requests {
		line, err := json.Marshal(detail{e, e.request, e.response})
		if err == nil {
			_, err = w.Write(append(line, '\n'))
		}
		if err != nil {
			return
		}
	}
}

const maxFault = 4 << 10

func (c *Console) setFault(w http.ResponseWriter, r *http.Request) {
	if name, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); name != "application/json" {
		fail(w, http.StatusUnsupportedMediaType, "unsupported_media_type", "Content-Type must be application/json")
		return
	}
	var set rule
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxFault))
	in.DisallowUnknownFields()
	err := in.Decode(&set)
	if err != nil {
		err = errors.New("the body is not a fault, as in {\"fault\": \"rate_limited\", \"next\": 3}")
	} else {
		err = set.check()
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "bad_request", err.Error())
		return
	}
	c.update(func() { c.faults.set(set) })
	c.serveState(w, r)
}

func reply(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		fail(w, http.StatusInternalServerError, "internal", err.Error())
		return
	}
	setHeader(w, "application/json")
	w.Write(append(body, '\n'))
}

// fail answers with the error object of the service, which its clients know.
func fail(w http.ResponseWriter, status int, code, message string) {
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"code": code, "message": message, "details": map[string]any{}}})
	setHeader(w, "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}

// setHeader sets what every answer of the console has. No other page may read
// or frame it.
func setHeader(w http.ResponseWriter, contentType string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}
