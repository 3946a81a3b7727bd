// Package console adds a page and a JSON API to a sandbox. They show the requests as they
// arrive, and switch faults on. Card numbers are masked in everything that it keeps and
// shows, and credentials and the free text of refunds are left out.
package console

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// A Console serves a sandbox, its page and its API. Its methods may be called
// concurrently.
type Console struct {
	engine *sandbox.Engine
	remote bool
	mux    http.ServeMux

	mu      sync.Mutex
	record  record
	faults  faults
	changed chan struct{} // closed with the next change
}

// New returns a console with a new sandbox. It is served under loopback addresses and
// localhost only. If remote is true, it is any IP address, and any name without a dot, such
// as that of a container.
func New(remote bool) *Console {
	c := &Console{
		engine:  sandbox.New(),
		remote:  remote,
		record:  newRecord(),
		changed: make(chan struct{}),
	}
	c.engine.Retain(1) // the console keeps its own record
	c.routes()
	return c
}

// ServeHTTP serves the page under /, the API under /sandbox/, the description of
// the service under /openapi.json, and the three areas under everything else.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	isGet := r.Method == http.MethodGet || r.Method == http.MethodHead
	isPage := r.URL.Path == "/" && isGet
	own := isPage || r.URL.Path == "/openapi.json" && isGet || strings.HasPrefix(r.URL.Path, "/sandbox/")
	switch err := c.admit(r, own, isPage); {
	case err != nil:
		fail(w, http.StatusForbidden, "forbidden", err.Error())
	case own:
		c.mux.ServeHTTP(w, r)
	default:
		c.observe(w, r)
	}
}

// update changes the state and wakes the streams that wait for it.
func (c *Console) update(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	close(c.changed)
	c.changed = make(chan struct{})
}

// reset forgets requests, faults and everything that was set.
func (c *Console) reset() {
	c.update(func() {
		c.engine.Reset()
		c.record.clear()
		c.faults.rules = nil
	})
}

// observe serves a request of the sandbox and records it, before the caller has the
// response.
func (c *Console) observe(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	body := readBody(r)
	arrived := newEntry(r, body, now)
	var fault sandbox.Fault
	c.update(func() {
		arrived.Fault, fault = c.faults.take(arrived.Area, r.URL.EscapedPath())
		c.record.add(arrived)
	})
	out := &response{ResponseWriter: w, request: r, finished: func(a *response, state string) {
		verdict := judge(arrived.Area, a, state)
		c.update(func() {
			arrived.Library = verdict
			c.record.finish(arrived, a, state)
		})
	}}
	defer out.finish()
	c.engine.Serve(out, r, fault, func(valid bool) {
		c.update(func() { c.record.process(arrived, valid) })
	})
}

// readBody reads the body of r as far as a sandbox reads it, and puts it back.
func readBody(r *http.Request) []byte {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	rest := io.Reader(r.Body)
	if err != nil {
		rest = failedReader{err} // for the sandbox too: net/http reports it once
	}
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), rest))
	return body
}

type failedReader struct{ err error }

func (f failedReader) Read([]byte) (int, error) { return 0, f.err }

var (
	errHost   = errors.New("the page is served under its IP address and localhost only, and with -remote under names without a dot")
	errOrigin = errors.New("web pages of other origins are not served")

	sameOrigin http.CrossOriginProtection
)

// admit refuses requests from web pages of other origins. A browser lets any page send
// requests to this machine. It even lets a page read the responses if the page's host name
// resolves to this machine, so only names that nobody else can own are served: a name
// without a dot is not in the public DNS.
func (c *Console) admit(r *http.Request, own, isPage bool) error {
	isBrowser := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
	if (own || isBrowser) && !c.knows(r.Host) {
		return errHost
	}
	if isPage && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
		return nil // a link to the page
	}
	asPost := *r
	asPost.Method = http.MethodPost // Check admits every GET, but a GET is recorded too
	if sameOrigin.Check(&asPost) != nil {
		return errOrigin
	}
	return nil
}

func (c *Console) knows(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	ip, err := netip.ParseAddr(name)
	if err == nil {
		return c.remote || ip.IsLoopback()
	}
	return name == "localhost" || c.remote && name != "" && !strings.Contains(name, ".")
}
