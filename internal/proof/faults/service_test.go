package faults

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A service responds as its schedule says, and keeps the record that the callers'
// reports are compared with.
type service struct {
	w *world

	mu         sync.Mutex
	seen       map[attemptName]int
	generation int // of the tokens that are accepted
	arrived    map[string]int
	recorded   map[string]int    // refunds, by their bodies
	accounts   map[string]string // of refunds that have an account of their own, by their bodies
	versions   map[string]int    // of the contents, by job
}

func newService(w *world) *service {
	return &service{w: w, seen: map[attemptName]int{}, arrived: map[string]int{}, recorded: map[string]int{}, accounts: map[string]string{}, versions: map[string]int{}}
}

// A response is what the service would say to a request, if nothing befell it.
type response struct {
	status  int
	header  http.Header
	body    []byte
	content io.ReadSeeker // in place of body
}

// attemptHeader tells the service which attempt a request is.
const attemptHeader = "Faults-Attempt"

// next is the attempt of a request that arrives now, and what befalls it.
func (s *service) next(r *http.Request) (a attemptName, f fault) {
	fmt.Sscanf(r.Header.Get(attemptHeader), "%d %d", &a.n, &a.turn)
	_, a.request, _ = strings.Cut(r.Header.Get(attemptHeader), ": ")
	s.mu.Lock()
	s.seen[a]++
	arrival := s.seen[a]
	s.mu.Unlock()
	return a, s.w.fault(a, arrival)
}

func (s *service) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	conn := r.Context().Value(serverConnKey{}).(*serverConn)
	stream := 2*conn.requests.Add(1) - 1
	a, f := s.next(r)
	s.w.note("%v: arrives: %v", a, f)
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
	response := s.respond(r, body, f)
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
		sleep(r.Context(), time.Millisecond) // or it would come together with the response
	}
	if f.ends {
		conn.end(f.cut, f.how)
	}
	s.send(rw, r, response, f)
	ownConnection := s.w.settings.idle == 0 || s.w.settings.ownTransport() && strings.HasSuffix(r.URL.Path, "/refunds")
	if f.twice && ownConnection && r.ProtoMajor == 1 {
		// On a connection that is kept, it would be taken for the response to the next
		// request, and no client could tell.
		http.NewResponseController(rw).Flush()
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
	}
	if f.closes > 0 {
		time.AfterFunc(f.closes, func() { conn.cut(f.how) })
	}
}

// count notices what arrives more often than it was sent.
func (s *service) count(r *http.Request, body []byte) {
	if !strings.HasSuffix(r.URL.Path, "/refunds") {
		return // net/http may repeat a read by itself
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

// respond processes a request, as far as its fault lets it, and makes its response.
func (s *service) respond(r *http.Request, body []byte, f fault) response {
	if f.expire {
		s.mu.Lock()
		s.generation++
		s.mu.Unlock()
	}
	var a response
	switch {
	case !s.authorized(r):
		return response{status: http.StatusUnauthorized, body: []byte(`{"error":{"code":"expired"}}`)}
	case strings.HasSuffix(r.URL.Path, "/bins/multiple"):
		a = s.respondLookup(body)
	case strings.HasSuffix(r.URL.Path, "/refunds"):
		// Cut off with its connection by another stream, or by the caller's own round
		// tripper, an error object cannot be told from a receipt, and the status counts.
		cut := r.ProtoMajor > 1 || s.w.parts.part == roundTripper
		if f.records() && !(s.w.settings.vouched && slices.Contains(vouched, f.status)) || f.page == errorObject && f.status/100 <= 2 && cut {
			s.record(r, body)
		}
		a = response{header: http.Header{"Content-Type": {"application/json"}}, body: []byte(`{"receipt":"` + strings.Repeat("r", 200) + `"}`)}
	default:
		a = s.respondDownload(r, f)
	}
	if f.status/100 > 2 {
		a = response{}
	}
	a.status = cmp.Or(f.status, a.status, http.StatusOK)
	a.header = maps.Clone(a.header)
	f.shape(&a)
	return a
}

// shape changes a response's header and body.
func (f fault) shape(a *response) {
	if a.header == nil {
		a.header = http.Header{}
	}
	if f.retryAfter != "" {
		a.header.Set("Retry-After", f.retryAfter)
	}
	if f.remaining != "" {
		a.header.Set("RateLimit-Remaining", f.remaining)
	}
	if f.encoded {
		a.header.Set("Content-Encoding", "br")
	}
	// Nobody can tell that the content of a download is another.
	if f.page == ordinary || a.content != nil && a.status == http.StatusOK && f.page != html && f.page != errorObject {
		return
	}
	a.content = nil
	switch f.page {
	case empty:
		a.body = nil
	case errorObject:
		a.header.Set("Content-Type", "application/json")
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

func (s *service) send(rw http.ResponseWriter, r *http.Request, a response, f fault) {
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
