// Package console puts a page and a JSON API beside a sandbox: what arrives, as
// it arrives, and switches for what befalls it. Nothing that it keeps or says
// holds a card number beyond the mask, a credential or free-form text of a
// refund.
package console

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// A Console serves a sandbox and what there is to see of it. Its methods may be
// called concurrently.
type Console struct {
	engine *sandbox.Engine
	remote bool
	mux    http.ServeMux

	mu      sync.Mutex
	record  record
	faults  faults
	changed chan struct{} // closed with the next change
}

// New returns a console for a sandbox of its own. With remote it answers under
// every IP address, otherwise under loopback addresses only.
func New(remote bool) *Console {
	c := &Console{engine: sandbox.New(), remote: remote, record: newRecord(), changed: make(chan struct{})}
	c.engine.Retain(1) // the console keeps its own record
	c.routes()
	return c
}

// ServeHTTP serves the page under /, the API under /sandbox/ and the three areas
// under everything else.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	isPage := r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead)
	own := isPage || strings.HasPrefix(r.URL.Path, "/sandbox/")
	switch err := c.admit(r, own, isPage); {
	case err != nil:
		fail(w, http.StatusForbidden, "forbidden", err.Error())
	case own:
		c.mux.ServeHTTP(w, r)
	default:
		c.observe(w, r)
	}
}

// update changes the state and tells those who wait for it.
func (c *Console) update(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	close(c.changed)
	c.changed = make(chan struct{})
}

// reset forgets all that arrived, the faults, and the state of the sandbox.
func (c *Console) reset() {
	c.update(func() {
		c.engine.Reset()
		c.record.clear()
		c.faults = nil
	})
}

// observe serves a request of the sandbox and records it. What a caller gets to
// see has been recorded before.
func (c *Console) observe(w http.ResponseWriter, r *http.Request) {
	arrived := newEntry(r, time.Now())
	var fault sandbox.Fault
	c.update(func() {
		arrived.Fault, fault = c.faults.take(sandbox.AreaOf(r))
		c.record.add(arrived)
	})
	out := &answer{ResponseWriter: w, request: r, finished: func(a *answer, state string) {
		c.update(func() { c.record.finish(arrived, a, state) })
	}}
	defer out.finish()
	c.engine.Serve(out, r, fault, func(valid bool) {
		c.update(func() { c.record.process(arrived, valid) })
	})
}
