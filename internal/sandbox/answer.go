package sandbox

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"strconv"
	"time"
)

// An answer is what a request gets unless a fault changes it.
type answer struct {
	status      int // 0: 200, or what the ranges of content call for
	contentType string
	header      http.Header
	body        []byte
	content     io.ReadSeeker // instead of body, with support for ranges
}

func (a answer) write(w http.ResponseWriter, r *http.Request, f Fault, started func(status int)) {
	h := w.Header()
	maps.Copy(h, a.header)
	if a.contentType != "" {
		h.Set("Content-Type", a.contentType)
	}
	out := &writer{ResponseWriter: w, ctx: r.Context(), delay: f.BodyDelay, limit: math.MaxInt64, status: a.status, started: started}
	if f.Truncate != 0 {
		out.limit = int64(max(f.Truncate, 0))
	}
	if a.content != nil {
		if a.status != 0 {
			r = r.Clone(r.Context())
			r.Header.Del("Range")
		}
		http.ServeContent(out, r, "", time.Time{}, a.content)
		return
	}
	status := cmp.Or(a.status, http.StatusOK)
	if status == http.StatusNoContent || status == http.StatusNotModified {
		h.Del("Content-Type")
		a.body = nil
	} else {
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	out.WriteHeader(status)
	out.Write(a.body)
}

var errStopped = errors.New("sandbox: answer stopped")

// A writer sends an answer with the faults of its body. When it stops short of
// the announced length, net/http ends the connection in order, so that the
// caller gets every byte that was sent.
type writer struct {
	http.ResponseWriter
	ctx     context.Context
	delay   time.Duration
	limit   int64
	status  int
	started func(status int)
	sent    int64
	middle  int64
}

func (w *writer) WriteHeader(status int) {
	status = cmp.Or(w.status, status)
	length, _ := strconv.ParseInt(w.Header().Get("Content-Length"), 10, 64)
	w.middle = min(length, w.limit) / 2
	w.started(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	var n int
	if end := w.sent + int64(len(p)); w.delay > 0 && end > w.middle {
		var err error
		if n, err = w.send(p[:w.middle-w.sent]); err != nil {
			return n, err
		}
		delay := w.delay
		w.delay = 0
		http.NewResponseController(w.ResponseWriter).Flush()
		if !pause(w.ctx, delay) {
			return n, errStopped
		}
	}
	m, err := w.send(p[n:])
	return n + m, err
}

func (w *writer) send(p []byte) (int, error) {
	allowed := p[:min(int64(len(p)), w.limit-w.sent)]
	n, err := w.ResponseWriter.Write(allowed)
	w.sent += int64(n)
	if err == nil && len(allowed) < len(p) {
		err = errStopped
	}
	return n, err
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
