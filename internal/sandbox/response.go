package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"strconv"
	"time"
)

// A response is what a request gets unless a fault changes it.
type response struct {
	status      int // 0: 200, or the status for the requested range of content
	contentType string
	header      http.Header
	body        []byte
	content     io.ReadSeeker // instead of body, with support for ranges
	modified    time.Time
	noRanges    bool
}

func (a response) write(w http.ResponseWriter, r *http.Request, f Fault, seen observer) {
	h := w.Header()
	maps.Copy(h, a.header)
	if a.contentType != "" {
		h.Set("Content-Type", a.contentType)
	}
	out := newWriter(w, r.Context(), f, seen)
	out.status, out.noRanges = a.status, a.noRanges
	defer out.end()
	if a.content != nil {
		http.ServeContent(out, f.ranged(r, a), "", a.modified, a.content)
		return
	}
	status := cmp.Or(a.status, http.StatusOK)
	if status == http.StatusNoContent || status == http.StatusNotModified {
		h.Del("Content-Type")
		a.body = nil
	} else {
		if a.contentType == "" {
			h["Content-Type"] = nil // net/http would guess one
		}
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	out.WriteHeader(status)
	out.Write(a.body)
}

// ranged returns the request with the range to serve.
func (f Fault) ranged(r *http.Request, a response) *http.Request {
	if f.Range == "" && a.status == 0 && !a.noRanges {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Del("Range")
	if f.Range != "" {
		r.Header.Set("Range", f.Range)
		r.Header.Del("If-Range")
	}
	return r
}

// cut resets the connection below w.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	switch c := conn.(type) {
	case interface{ Reset() }:
		c.Reset()
	case interface{ SetLinger(int) error }:
		c.SetLinger(0)
	}
	conn.Close()
}

// pause reports whether d passed before ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// An apiError is the error object of the download endpoint.
type apiError struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

func failure(status int, code, message string) response {
	return failed(status, apiError{code, message, map[string]any{}})
}

func failed(status int, e apiError) response {
	body, _ := json.Marshal(map[string]apiError{"error": e})
	return response{status: status, contentType: "application/json", body: body}
}

func unauthorized(message string) response {
	return failure(http.StatusUnauthorized, "unauthorized", message)
}

func methodNotAllowed(allow string) response {
	a := failure(http.StatusMethodNotAllowed, "method_not_allowed", "the method must be "+allow)
	a.header = http.Header{"Allow": {allow}}
	return a
}

// An observer is called with the status, and with the size of each piece that is sent.
type observer struct {
	status func(int)
	sent   func(int)
}

// A writer sends a response with the faults of its body. If it sends less than it has
// announced, net/http closes the connection without a reset, so that the caller gets
// every byte that was sent.
type writer struct {
	http.ResponseWriter
	ctx      context.Context
	fault    Fault
	seen     observer
	status   int
	noRanges bool
	limit    int64
	stallAt  int64 // -1: no more
	sent     int64
	stopped  bool
	instead  []byte // is sent in place of the written bytes
}

var errStopped = errors.New("sandbox: response stopped")

func newWriter(w http.ResponseWriter, ctx context.Context, f Fault, seen observer) *writer {
	out := &writer{ResponseWriter: w, ctx: ctx, fault: f, seen: seen, limit: math.MaxInt64, stallAt: -1}
	if f.Truncate != 0 {
		out.limit = int64(max(f.Truncate, 0))
	}
	return out
}

func (w *writer) WriteHeader(status int) {
	status = cmp.Or(w.status, status)
	h := w.Header()
	if status == http.StatusRequestedRangeNotSatisfiable && h.Get("Content-Length") == "" {
		// http.ServeContent would answer in plain text.
		a := failure(status, "range_not_satisfiable", "the result is not that long")
		w.instead = a.body
		h.Set("Content-Type", a.contentType)
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	length, _ := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	if w.fault.BodyDelay > 0 {
		w.stallAt = min(length, w.limit) / 2
		if after := w.fault.DelayAfter; after != 0 {
			w.stallAt = int64(max(after, 0))
		}
	}
	if w.noRanges {
		h.Del("Accept-Ranges")
	}
	w.fault.setHeader(h) // again, after what http.ServeContent has set
	if len(w.fault.Header["Content-Length"]) > 0 {
		// net/http would send no part of a body that is longer than announced.
		if announced, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil {
			w.limit = min(w.limit, announced)
		}
	}
	if w.fault.Chunked || w.fault.Unframed {
		h.Del("Content-Length")
	}
	if w.fault.Unframed {
		h.Set("Transfer-Encoding", "identity") // tells net/http not to send chunks, and is not sent itself
	}
	w.seen.status(status)
	w.ResponseWriter.WriteHeader(status)
	if w.fault.Chunked {
		w.flush() // net/http would count a short body
	}
}

func (w *writer) Write(p []byte) (int, error) {
	if w.instead != nil {
		instead := w.instead
		w.instead = nil
		_, err := w.Write(instead)
		return len(p), err
	}
	n := 0
	if w.stallAt >= 0 && w.sent+int64(len(p)) > w.stallAt {
		var err error
		if n, err = w.send(p[:w.stallAt-w.sent]); err != nil {
			return n, err
		}
		w.stallAt = -1
		w.flush()
		if !pause(w.ctx, w.fault.BodyDelay) {
			w.stopped = true
			return n, errStopped
		}
	}
	m, err := w.send(p[n:])
	return n + m, err
}

// ReadFrom saves large contents most of the system calls of io.Copy's buffer.
func (w *writer) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{w}, r, make([]byte, 256<<10))
}

func (w *writer) send(p []byte) (int, error) {
	allowed := p[:min(int64(len(p)), w.limit-w.sent)]
	n := 0
	if len(allowed) > 0 {
		w.seen.sent(len(allowed)) // before the write, so that the count is complete when the caller has all bytes
		var err error
		n, err = w.ResponseWriter.Write(allowed)
		w.seen.sent(n - len(allowed))
		w.sent += int64(n)
		if err != nil {
			return n, err
		}
	}
	if n < len(p) {
		w.stopped = true
		return n, errStopped
	}
	return n, nil
}

// end stops a chunked response without the last chunk, if it must be cut off. net/http would
// send that chunk, and the body would look complete.
func (w *writer) end() {
	if w.stopped && w.fault.Chunked {
		w.flush()
		panic(http.ErrAbortHandler)
	}
}

func (w *writer) flush() { http.NewResponseController(w.ResponseWriter).Flush() }
