package console

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// A state has the counters and the faults in force.
type state struct {
	Oldest  int              `json:"oldest"`  // number of the oldest request kept
	Dropped int              `json:"dropped"` // requests that are no longer kept
	Areas   map[string]count `json:"areas"`
	Faults  []rule           `json:"faults"`
}

// A listing is the state with the requests that have changed since an earlier listing.
type listing struct {
	state
	Requests []entry `json:"requests"`
}

func (c *Console) routes() {
	c.mux.HandleFunc("GET /{$}", servePage)
	c.mux.HandleFunc("GET /sandbox/state", c.serveState)
	c.mux.HandleFunc("GET /sandbox/requests", func(w http.ResponseWriter, r *http.Request) {
		list, _, _ := c.since(0)
		q := strings.ToLower(r.URL.Query().Get("q"))
		list.Requests = slices.DeleteFunc(list.Requests, func(e entry) bool { return !e.contains(q) })
		reply(w, list)
	})
	c.mux.HandleFunc("GET /sandbox/requests/{number}", c.serveRequest)
	c.mux.HandleFunc("GET /sandbox/requests.ndjson", c.export)
	c.mux.HandleFunc("GET /sandbox/refunds", c.serveRefund)
	c.mux.HandleFunc("GET /sandbox/events", c.events)
	c.mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		setHeader(w, "application/json")
		w.Write(sandbox.OpenAPI)
	})
	c.mux.HandleFunc("POST /sandbox/faults", c.setFault)
	c.mux.HandleFunc("DELETE /sandbox/faults/{id}", c.removeFault)
	c.mux.HandleFunc("PUT /sandbox/cards/{bin...}", c.setCard)
	c.mux.HandleFunc("PUT /sandbox/jobs/{job}", c.setJob)
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
	s := state{Oldest: c.record.last + 1, Dropped: c.record.dropped, Areas: make(map[string]count), Faults: []rule{}}
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
	for _, r := range c.faults.rules {
		r.Path = text(r.Path)
		s.Faults = append(s.Faults, r)
	}
	return s
}

// since returns what changed after the change with that number, the number of the last
// change, and a channel that is closed with the next one.
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

// serveRefund says whether a refund was recorded: true, false, or null if the request for it may be
// no longer kept.
func (c *Console) serveRefund(w http.ResponseWriter, r *http.Request) {
	account, id := r.URL.Query().Get("account"), r.URL.Query().Get("refund_id")
	key := keyOf(http.MethodPost, "/v1/"+account+"/refunds", []byte(id))
	c.mu.Lock()
	recorded := slices.ContainsFunc(c.record.entries, func(e *entry) bool { return e.Accepted && e.key == key })
	complete := c.record.dropped == 0
	c.mu.Unlock()
	answer := struct {
		Recorded *bool `json:"recorded"`
	}{&recorded}
	if !recorded && !complete {
		answer.Recorded = nil
	}
	reply(w, answer)
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

func reply(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		fail(w, http.StatusInternalServerError, "internal", err.Error())
		return
	}
	setHeader(w, "application/json")
	w.Write(append(body, '\n'))
}

// fail responds with the error object of the service, which its clients know.
func fail(w http.ResponseWriter, status int, code, message string) {
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"code": code, "message": message, "details": map[string]any{}}})
	setHeader(w, "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}

// setHeader sets the header fields of all responses of the console. No other page may read
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

//go:embed page.html
var page string

// policy lets the page run its own script and style and reach its own origin.
var policy = fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; connect-src 'self'; img-src data:; "+
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'", hash("script"), hash("style"))

func hash(element string) string {
	_, content, _ := strings.Cut(page, "<"+element+">")
	content, _, _ = strings.Cut(content, "</"+element+">")
	sum := sha256.Sum256([]byte(content))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func servePage(w http.ResponseWriter, r *http.Request) {
	setHeader(w, "text/html; charset=utf-8")
	w.Write([]byte(page))
}

// eventPause is how long changes are collected before they are sent together.
const eventPause = 50 * time.Millisecond

// events sends all requests as the event "snapshot", and then those that are new or
// changed as the event "update". Nothing is queued for a slow reader: it gets the latest
// state of each request and misses steps in between.
func (c *Console) events(w http.ResponseWriter, r *http.Request) {
	setHeader(w, "text/event-stream")
	event, last := "snapshot", 0
	for {
		list, change, changed := c.since(last)
		last = change
		data, err := json.Marshal(list)
		if err != nil {
			return
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data)
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		event = "update"
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
		time.Sleep(eventPause)
	}
}
