package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// latency is how long the service takes for a response.
const latency = 50 * time.Millisecond

// A service is the sandbox behind a strict quota.
type service struct {
	url    string
	server http.Server

	mu      sync.Mutex
	limiter *rate.Limiter
	counts  counts
}

// Counts are of the requests that arrived.
type counts struct {
	Requests int `json:"requests"`
	Refused  int `json:"refused"` // with 429
}

func startService() (*service, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &service{url: "http://" + l.Addr().String()}
	s.reset()
	engine := sandbox.New()
	s.server.ErrorLog = log.New(io.Discard, "", 0)
	s.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.admit() {
			// As services do: whole seconds, the same for everyone.
			w.Header().Set("Retry-After", "1")
			http.Error(w, "the quota is exceeded", http.StatusTooManyRequests)
			return
		}
		time.Sleep(latency)
		engine.ServeHTTP(w, r)
	})
	go s.server.Serve(l)
	return s, nil
}

func (s *service) admit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Requests++
	if s.limiter.Allow() {
		return true
	}
	s.counts.Refused++
	return false
}

// reset gives the service a quota that nobody has used.
func (s *service) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limiter, s.counts = rate.NewLimiter(quotaLimit, quotaBurst), counts{}
}

// counted returns what arrived since the last reset.
func (s *service) counted() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

func (s *service) close() { s.server.Close() }
