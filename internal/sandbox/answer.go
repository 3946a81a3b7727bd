package sandbox

import (
	"cmp"
	"context"
	"io"
	"maps"
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
	modified    time.Time
	noRanges    bool
}

func (a answer) write(w http.ResponseWriter, r *http.Request, f Fault, seen observer) {
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
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	out.WriteHeader(status)
	out.Write(a.body)
}

// ranged returns the request whose range content is served by.
func (f Fault) ranged(r *http.Request, a answer) *http.Request {
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
