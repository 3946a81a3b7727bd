package faults

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A service answers as its schedule says, and keeps the record that the callers'
// reports are compared with.
type service struct {
	w *world

	mu         sync.Mutex
	faults     []fault
	generation int // of the tokens that are accepted
	arrived    map[string]int
	recorded   map[string]int // refunds, by their bodies
	versions   map[string]int // of the contents, by job
}

func newService(w *world) *service {
	return &service{w: w, faults: w.faults, arrived: map[string]int{}, recorded: map[string]int{}, versions: map[string]int{}}
}

// An answer is what the service would say to a request, if nothing befell it.
type answer struct {
	status  int
	header  http.Header
	body    []byte
	content io.ReadSeeker // in place of body
}

// next is the fault of a request that arrives now.
func (s *service) next() (n int, f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = len(s.w.faults) - len(s.faults)
	if len(s.faults) > 0 {
		f = s.faults[0]
		s.faults = s.faults[1:]
	}
	return n, f
}

func (s *service) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	conn := r.Context().Value(serverConnKey{}).(*serverConn)
	stream := 2*conn.requests.Add(1) - 1
	n, f := s.next()
	s.w.note("request %d arrives: %s %s: %v", n, r.Method, r.URL.Path, f)
	if f.unread {
		s.w.count("request not read")
		conn.cut(reset)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.w.count("request cut off")
		return
	}
	s.count(r, body)
	a := s.answer(r, body, f)
	if f.delay > 0 && !sleep(r.Context(), f.delay) {
		return
	}
	if f.garbage {
		io.WriteString(conn, "garbage\r\n\r\n")
		conn.cut(closed)
		return
	}
	if f.frame != noFrame && r.ProtoMajor == 2 {
		conn.Write(f.frame.bytes(stream))
	}
	if f.ends {
		conn.end(f.cut, f.how)
	}
	s.send(rw, r, a, f)
	if f.closes > 0 {
		time.AfterFunc(f.closes, func() { conn.cut(f.how) })
	}
}

// count notices what arrives more often than it was sent.
func (s *service) count(r *http.Request, body []byte) {
	if r.Method != http.MethodPost {
		return // net/http may repeat a GET by itself
	}
	key := r.URL.Path + string(body)
	s.mu.Lock()
	s.arrived[key]++
	n := s.arrived[key]
	s.mu.Unlock()
	if sent := s.w.wire.sentOf(string(body)); n > sent {
		s.w.violate(resent, "a request arrived %d times and was sent %d times", n, sent)
	}
}

// answer processes a request, as far as its fault lets it, and makes its answer.
func (s *service) answer(r *http.Request, body []byte, f fault) answer {
	if f.expire {
		s.mu.Lock()
		s.generation++
		s.mu.Unlock()
	}
	var a answer
	switch {
	case !s.authorized(r):
		return answer{status: http.StatusUnauthorized, body: []byte(`{"error":{"code":"expired"}}`)}
	case r.URL.Path == "/elsewhere" || r.URL.Path == "/":
		return answer{status: http.StatusNotFound}
	case strings.HasSuffix(r.URL.Path, "/bins/multiple"):
		a = answerLookup(body, f.shuffled)
	case strings.HasSuffix(r.URL.Path, "/refunds"):
		if f.records() {
			s.record(r, body)
		}
		a = answer{header: http.Header{"Content-Type": {"application/json"}}, body: []byte(`{"receipt":"` + strings.Repeat("r", 200) + `"}`)}
	default:
		a = s.answerDownload(r, f)
	}
	if f.status/100 > 2 {
		a = answer{}
	}
	a.status = cmp.Or(f.status, a.status, http.StatusOK)
	a.header = maps.Clone(a.header)
	f.shape(&a, r)
	return a
}

// shape changes an answer's header and body.
func (f fault) shape(a *answer, r *http.Request) {
	if a.header == nil {
		a.header = http.Header{}
	}
	if f.retryAfter != "" {
		value := f.retryAfter
		if ahead, err := time.ParseDuration(value); err == nil && strings.HasSuffix(value, "s") {
			value = time.Now().Add(ahead).UTC().Format(http.TimeFormat)
		}
		a.header.Set("Retry-After", value)
	}
	if location := f.location; location != "" {
		if location == "same" {
			location = r.URL.Path
		}
		a.header.Set("Location", location)
	}
	// Nobody can tell that the content of a download is another.
	if f.page == ordinary || a.content != nil && a.status == http.StatusOK && f.page != html {
		return
	}
	a.content = nil
	switch f.page {
	case empty:
		a.body = nil
	case errorObject:
		a.body = []byte(`{"error":{"code":"refused","message":"for a reason","details":{}}}`)
	case html:
		a.header.Set("Content-Type", "text/html; charset=utf-8")
		a.body = []byte("<!DOCTYPE html><title>Sign in</title>")
	case notJSON:
		a.body = []byte(`{"cards":[`)
	case huge, endless:
		a.body = bytes.Repeat([]byte(" "), 100<<10)
	}
}

func (s *service) authorized(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.HasSuffix(r.URL.Path, "/refunds") || r.Header.Get("Authorization") == s.token()
}

// token is the header that is accepted now.
func (s *service) token() string { return "Bearer " + tokenOf(s.generation) }

func tokenOf(generation int) string { return "t" + strconv.Itoa(generation) }

func (s *service) send(rw http.ResponseWriter, r *http.Request, a answer, f fault) {
	if f.early != 0 {
		rw.WriteHeader(f.early)
	}
	maps.Copy(rw.Header(), a.header)
	if a.content != nil {
		http.ServeContent(&statusWriter{rw, a.status, f.chunked}, r, "", time.Time{}, a.content)
		return
	}
	if a.status == http.StatusNoContent || a.status == http.StatusNotModified {
		rw.WriteHeader(a.status)
		return
	}
	if !f.chunked {
		rw.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	rw.WriteHeader(a.status)
	if f.chunked || f.page == endless {
		http.NewResponseController(rw).Flush()
	}
	for part := range slices.Chunk(a.body, 10<<10) {
		if f.page == endless && !sleep(r.Context(), 3*time.Second) {
			return
		}
		if _, err := rw.Write(part); err != nil {
			return
		}
	}
}

// A statusWriter changes what http.ServeContent says.
type statusWriter struct {
	http.ResponseWriter
	status  int
	chunked bool
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status != http.StatusOK {
		status = w.status
	}
	if w.chunked {
		w.Header().Del("Content-Length")
	}
	w.ResponseWriter.WriteHeader(status)
}

func (s *service) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for refund, n := range s.recorded {
		if n > 1 {
			defer s.w.violate(doubled, "refund %s was recorded %d times", refund, n)
		}
	}
}
