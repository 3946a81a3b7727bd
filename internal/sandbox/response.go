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

func (a response) write(w http.ResponseWriter, r *http.Request, f Fault, seen func(status, sent int)) {
	h := w.Header()
	maps.Copy(h, a.header)
	if a.contentType != "" {
		h.Set("Content-Type", a.contentType)
	}
	out := &writer{ResponseWriter: w, ctx: r.Context(), fault: f, seen: seen, status: a.status, noRanges: a.noRanges, left: math.MaxInt64}
	if f.Truncate != 0 {
		out.left = int64(max(f.Truncate, 0))
	}
	defer out.end()
	if a.content != nil {
		if a.status != 0 || a.noRanges {
			r = r.Clone(r.Context())
			r.Header.Del("Range")
		}
		http.ServeContent(out, r, "", a.modified, a.content)
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

// A writer sends a response, and ends it where the fault says. A truncated body is less than
// its header announces, or has no last chunk.
type writer struct {
	http.ResponseWriter
	ctx      context.Context
	fault    Fault
	seen     func(status, sent int) // called with the size of each piece that is sent
	status   int
	noRanges bool
	left     int64 // of the body to be sent
	stopped  bool
}

var errStopped = errors.New("sandbox: response stopped")

func (w *writer) WriteHeader(status int) {
	w.status = cmp.Or(w.status, status)
	h := w.Header()
	if w.noRanges {
		h.Del("Accept-Ranges")
	}
	w.fault.setHeader(h) // again, after what http.ServeContent has set
	if announced, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil {
		// net/http would send no part of a body that is longer than announced.
		w.left = min(w.left, announced)
	}
	w.seen(w.status, 0)
	w.ResponseWriter.WriteHeader(w.status)
	if h.Get("Content-Length") == "" {
		w.flush() // net/http would count a short body
	}
}

func (w *writer) Write(p []byte) (n int, err error) {
	if part := p[:min(int64(len(p)), w.left)]; len(part) > 0 {
		w.seen(w.status, len(part)) // before the write, so that the count is complete when the caller has all bytes
		n, err = w.ResponseWriter.Write(part)
		w.seen(w.status, n-len(part))
		w.left -= int64(n)
	}
	if err == nil && n < len(p) {
		w.stopped, err = true, errStopped
	}
	return n, err
}

// ReadFrom saves large contents most of the system calls of io.Copy's buffer.
func (w *writer) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{w}, r, make([]byte, 256<<10))
}

// end ends the connection behind a truncated body.
func (w *writer) end() {
	if w.stopped {
		w.flush()
		pause(w.ctx, w.fault.Delay)
		panic(http.ErrAbortHandler)
	}
}

func (w *writer) flush() { http.NewResponseController(w.ResponseWriter).Flush() }
