package sandbox

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"
)

// An observer is told what is answered while it is.
type observer struct {
	status func(int)
	sent   func(int)
}

// A writer sends an answer with the faults of its body. When it stops short of
// the announced length, net/http ends the connection in order, so that the
// caller gets every byte that was sent.
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
	began    time.Time
	stopped  bool
}

var errStopped = errors.New("sandbox: answer stopped")

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
	if w.fault.Chunked || w.fault.Unframed {
		h.Del("Content-Length")
	}
	if w.fault.Unframed {
		h.Set("Transfer-Encoding", "identity") // which net/http takes as its sign, and does not send
	}
	w.seen.status(status)
	w.began = time.Now()
	w.ResponseWriter.WriteHeader(status)
	if w.fault.Chunked {
		w.flush() // net/http would count a short body
	}
}

func (w *writer) Write(p []byte) (int, error) {
	n := 0
	if w.stallAt >= 0 && w.sent+int64(len(p)) > w.stallAt {
		var err error
		if n, err = w.send(p[:w.stallAt-w.sent]); err != nil {
			return n, err
		}
		w.stallAt = -1
		w.flush()
		if !w.pause(w.fault.BodyDelay) {
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

// pieces is how many times a second a bounded rate sends something.
const pieces = 50

func (w *writer) send(p []byte) (n int, err error) {
	allowed := p[:min(int64(len(p)), w.limit-w.sent)]
	rate := w.fault.BytesPerSecond
	for len(allowed) > 0 && err == nil {
		piece := allowed
		if rate > 0 {
			piece = allowed[:min(len(allowed), max(1, rate/pieces))]
		}
		w.seen.sent(len(piece)) // first, so that a caller who has all of it finds it counted
		var m int
		m, err = w.ResponseWriter.Write(piece)
		w.seen.sent(m - len(piece))
		n += m
		w.sent += int64(m)
		allowed = allowed[len(piece):]
		if rate > 0 && err == nil {
			w.flush()
			due := time.Duration(float64(w.sent) / float64(rate) * float64(time.Second))
			if !w.pause(due - time.Since(w.began)) {
				err = errStopped
			}
		}
	}
	if err == nil && n < len(p) {
		w.stopped = true
		err = errStopped
	}
	return n, err
}

// end ends an answer in chunks without the last one where it was to stop: of
// itself net/http would send it, as if all had been said.
func (w *writer) end() {
	if w.stopped && w.fault.Chunked {
		w.flush()
		panic(http.ErrAbortHandler)
	}
}

func (w *writer) flush() { http.NewResponseController(w.ResponseWriter).Flush() }

func (w *writer) pause(d time.Duration) bool {
	if pause(w.ctx, d) {
		return true
	}
	w.stopped = true
	return false
}
