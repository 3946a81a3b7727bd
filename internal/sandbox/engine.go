package sandbox

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// An Area is one of the three parts of the service.
type Area string

// The areas.
const (
	Bins    Area = "bins"
	Refunds Area = "refunds"
	Updater Area = "updater"
)

const (
	maxBody       = 1 << 20
	defaultRetain = 10_000
)

// An Engine is the state of one sandbox. It is an [http.Handler] that tells the
// areas apart by path. Its methods may be called concurrently.
type Engine struct {
	mu       sync.Mutex
	retain   int
	scripts  map[Area][]Fault
	chooser  map[Area]func(Request) Fault
	arrived  map[Area][]*Request
	results  map[string]result
	longest  int
	makeItem func(card string) json.RawMessage
	refunds  []Refund
	receipt  response // to a refund
	jobs     map[jobKey]job
	revoked  map[string]bool // tokens
}

// New returns an engine with the built-in data set and no faults.
func New() *Engine {
	e := &Engine{retain: defaultRetain}
	e.Reset()
	return e
}

// Reset puts e back to the state of [New], except for [Engine.Retain].
func (e *Engine) Reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.scripts = make(map[Area][]Fault)
	e.chooser = make(map[Area]func(Request) Fault)
	e.arrived = make(map[Area][]*Request)
	e.results, e.longest = builtinResults()
	e.makeItem = nil
	e.refunds = nil
	e.receipt = response{status: http.StatusOK, contentType: "application/json", body: []byte("{}")}
	e.revoked = make(map[string]bool)
	e.jobs = map[jobKey]job{{"", defaultJobID}: newJob(defaultJob())}
}

// Script appends faults to the script of area. Each request of that area takes
// one, in order of arrival. After the last one, requests are handled normally again.
func (e *Engine) Script(area Area, faults ...Fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range faults {
		e.scripts[area] = append(e.scripts[area], f.clone())
	}
}

// ScriptFunc sets a function that chooses the fault of each request of area once the script
// is empty. choose is called concurrently. The connection exists by then, so Refuse acts as Drop.
func (e *Engine) ScriptFunc(area Area, choose func(Request) Fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.chooser[area] = choose
}

// ScriptFor makes f the fault of each request of area that carries text, as a string in its
// body or as a segment of its path, once the script is empty. A later text goes first.
func (e *Engine) ScriptFor(area Area, text string, f Fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	others := e.chooser[area]
	e.chooser[area] = func(r Request) Fault {
		switch {
		case r.carries(text):
			return f
		case others != nil:
			return others(r)
		}
		return Fault{}
	}
}

// RevokeToken refuses the token from now on.
func (e *Engine) RevokeToken(token string) { e.update(func() { e.revoked[token] = true }) }

func (e *Engine) isRevoked(r *http.Request) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.revoked) > 0 && e.revoked[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
}

// Pending reports how many faults of area's script no request has taken yet.
func (e *Engine) Pending(area Area) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.scripts[area])
}

// ServeHTTP serves all three areas.
func (e *Engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.serve(w, r, AreaOf(r), e.nextFault, nil)
}

// Serve works like ServeHTTP, with f instead of the next fault of the script. Before the
// response it calls processed with whether the request was valid. If f keeps the request
// from being processed, it does not call it.
func (e *Engine) Serve(w http.ResponseWriter, r *http.Request, f Fault, processed func(valid bool)) {
	e.serve(w, r, AreaOf(r), func(Area) (Fault, bool) { return f.clone(), true }, processed)
}

// AreaOf returns the area that the path of r belongs to, or "".
func AreaOf(r *http.Request) Area {
	switch segments(r)[0] {
	case "bins":
		return Bins
	case "v1":
		return Refunds
	case "updater":
		return Updater
	}
	return ""
}

func (e *Engine) serve(w http.ResponseWriter, r *http.Request, area Area, next func(Area) (Fault, bool), processed func(bool)) {
	req, fault, choose := e.arrive(area, r, next)
	if fault.Refuse || fault.Drop && !fault.Process {
		cut(w)
		return
	}
	body, err := readBody(r)
	if err != nil && !errors.Is(err, errTooLarge) {
		cut(w)
		return
	}
	e.update(func() { req.Body = body })
	if choose != nil {
		fault = choose(req.clone()).clone()
		fault.Drop = fault.Drop || fault.Refuse
	}

	var a response
	switch {
	case err != nil:
		a = failure(http.StatusRequestEntityTooLarge, "too_large", err.Error())
	case fault.processes():
		a = e.respond(area, r, body)
		if processed != nil {
			processed(a.status < 300)
		}
	}
	if fault.Truncate == 0 && !pause(r.Context(), fault.Delay) || fault.Drop {
		cut(w)
		return
	}
	fault.shape(&a)
	a.write(w, r, fault, func(status, sent int) {
		e.update(func() { req.Status, req.Sent = status, req.Sent+int64(sent) })
	})
}

func (e *Engine) update(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
}

// arrive takes the fault and records the request in one step, so that the
// script and the record agree on the order of arrival. If the script is empty, choose chooses
// the fault.
func (e *Engine) arrive(area Area, r *http.Request, next func(Area) (Fault, bool)) (req *Request, fault Fault, choose func(Request) Fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	req = &Request{Time: time.Now(), Method: r.Method, Path: r.URL.EscapedPath(), Header: redact(r.Header)}
	fault, scripted := next(area)
	e.arrived[area] = latest(e.arrived[area], req, e.retain)
	if !scripted {
		choose = e.chooser[area]
	}
	return req, fault, choose
}

func (e *Engine) nextFault(area Area) (Fault, bool) {
	script := e.scripts[area]
	if len(script) == 0 {
		return Fault{}, false
	}
	e.scripts[area] = script[1:]
	return script[0], true
}

func (e *Engine) respond(area Area, r *http.Request, body []byte) response {
	path := segments(r)
	switch {
	case e.isRevoked(r):
		return unauthorized("the token was revoked")
	case area == Bins && len(path) == 2 && path[0] == "bins" && path[1] == "multiple":
		return e.lookup(r, body)
	case area == Refunds && len(path) == 3 && path[0] == "v1" && path[2] == "refunds":
		return e.refund(r, path[1], body)
	case area == Updater && len(path) == 5 && path[0] == "updater" && path[1] == "inquiries" &&
		path[2] == "jobs" && path[4] == "download":
		return e.download(r, path[3])
	}
	return failure(http.StatusNotFound, "not_found", "no such endpoint")
}

// An escaped slash is part of an identifier, so the path is split before its
// segments are unescaped.
func segments(r *http.Request) []string {
	return strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
}

var errTooLarge = errors.New("the request body is too large")

// readBody reads to the end even above the limit. Otherwise a caller that still writes would
// see a broken connection instead of the response.
func readBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	rest, err := io.Copy(io.Discard, r.Body)
	if err == nil && rest > 0 {
		err = errTooLarge
	}
	return body, err
}
