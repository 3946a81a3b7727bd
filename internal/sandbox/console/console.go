// Package console puts a page and a JSON API beside a sandbox: what arrives, as
// it arrives, and switches for what befalls it. Nothing that it keeps or says
// holds a card number beyond the mask, a credential or free-form text of a
// refund.
package console

import (
	"bytes"
	_ "embed"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// Options say how a console is served.
type Options struct {
	// Remote serves under every IP address, and not loopback addresses alone.
	Remote bool
	// Hosts are names that it is served under too, such as that of a container.
	Hosts []string
	// Profile has the sandbox decide like a service. nil is none.
	Profile *sandbox.Profile
}

// A Console serves a sandbox and what there is to see of it. Its methods may be
// called concurrently.
type Console struct {
	engine  *sandbox.Engine
	options Options
	mux     http.ServeMux
	large   chan struct{} // a place for each large body that is read
	verdicts
	closed chan struct{}

	mu      sync.Mutex
	record  record
	faults  faults
	changed chan struct{} // closed with the next change
}

// New returns a console for a sandbox of its own.
func New(o Options) *Console {
	c := &Console{
		engine:  sandbox.New(),
		options: o,
		large:   make(chan struct{}, maxLargeBodies),
		closed:  make(chan struct{}),
		record:  newRecord(),
		changed: make(chan struct{}),
	}
	c.engine.Retain(1) // the console keeps its own record
	c.engine.SetProfile(o.Profile)
	c.routes()
	return c
}

// Close ends what would not end of itself: the streams of events.
func (c *Console) Close() { close(c.closed) }

// IdleTimeout is when the profile has idle connections closed, 0 for never.
func (c *Console) IdleTimeout() time.Duration { return c.engine.IdleTimeout() }

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

// update changes the state and tells those who wait for it.
func (c *Console) update(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	close(c.changed)
	c.changed = make(chan struct{})
}

// reset forgets all that arrived, the faults, and all that was set.
func (c *Console) reset() {
	c.update(func() {
		c.engine.Reset()
		c.engine.SetProfile(c.options.Profile)
		c.record.clear()
		c.faults.rules = nil
	})
}

// observe serves a request of the sandbox and records it. What a caller gets to
// see has been recorded before.
func (c *Console) observe(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	body, err := c.readBody(w, r)
	if err != nil {
		w.Header().Set("Connection", "close")
		fail(w, http.StatusRequestTimeout, "request_timeout", "the request's body stalled")
		return
	}
	arrived := newEntry(r, body, now)
	var fault sandbox.Fault
	c.update(func() {
		arrived.Fault, fault = c.faults.take(sandbox.AreaOf(r), r, string(body))
		c.record.add(arrived)
	})
	out := &response{ResponseWriter: w, request: r, finished: func(a *response, state string) {
		verdict := c.judge(arrived.Area, a, state)
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

const (
	stall          = 10 * time.Second // without a byte
	longestBody    = time.Minute
	smallBody      = 64 << 10
	maxLargeBodies = 16
)

// readBody reads the body of r as far as a sandbox reads it, and puts it back. It
// ends one that stalls, and keeps few large ones at a time, so that callers who
// never finish hold little.
func (c *Console) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Body == http.NoBody {
		return nil, nil
	}
	control := http.NewResponseController(w)
	defer control.SetReadDeadline(time.Time{})
	in := &patientReader{r.Body, control, time.Now().Add(longestBody)}
	body, err := readUpTo(in, nil, smallBody, r.ContentLength)
	if err == nil && len(body) == smallBody {
		select {
		case c.large <- struct{}{}:
			defer func() { <-c.large }()
		case <-time.After(stall):
			return nil, errStalled
		}
		body, err = readUpTo(in, body, maxBody, r.ContentLength)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, errStalled
	}
	rest := io.Reader(in)
	if err != nil {
		rest = failedReader{err} // for the sandbox to meet, too: net/http tells it once
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), r.Body}
	return body, nil
}

type failedReader struct{ err error }

func (f failedReader) Read([]byte) (int, error) { return 0, f.err }

// readUpTo reads until body has limit bytes, with no more room than an announced
// length needs.
func readUpTo(in io.Reader, body []byte, limit int, announced int64) ([]byte, error) {
	if announced < 0 {
		rest, err := io.ReadAll(io.LimitReader(in, int64(limit-len(body))))
		return append(body, rest...), err
	}
	whole := make([]byte, min(announced, int64(limit)))
	n := copy(whole, body)
	m, err := io.ReadFull(in, whole[n:])
	if errors.Is(err, io.EOF) {
		err = nil // there is none left
	}
	return whole[:n+m], err
}

var errStalled = errors.New("the body stalled")

// A patientReader waits for each part of a body, but not for ever.
type patientReader struct {
	io.Reader
	control *http.ResponseController
	end     time.Time
}

func (p *patientReader) Read(b []byte) (int, error) {
	deadline := time.Now().Add(stall)
	if p.end.Before(deadline) {
		deadline = p.end
	}
	p.control.SetReadDeadline(deadline)
	return p.Reader.Read(b)
}

var (
	errHost   = errors.New("the page is served under its IP address, localhost and the names of -allow-host only")
	errOrigin = errors.New("web pages of other origins are not served")
)

// admit refuses what web pages elsewhere send: a browser lets any page send
// requests to this machine, and read the responses too if its name was made to
// resolve here. So a request from a page has to come from this one, and the page
// serves no name that others could own.
func (c *Console) admit(r *http.Request, own, isPage bool) error {
	known := c.knows(r.Host)
	if own && !known {
		return errHost
	}
	if origin := r.Header["Origin"]; origin != nil && (!known || len(origin) != 1 || origin[0] != "http://"+r.Host) {
		return errOrigin
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return nil
	}
	// Whoever follows a link to the page has left the other one.
	if isPage && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
		return nil
	}
	return errOrigin
}

func (c *Console) knows(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && (c.options.Remote || ip.IsLoopback()) ||
		slices.ContainsFunc(c.options.Hosts, func(host string) bool { return strings.EqualFold(host, name) })
}
