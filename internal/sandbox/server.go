package sandbox

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox/memnet"
)

// A Server serves an engine until Close.
type Server struct {
	// Transport reaches a server in memory under every http and https URL. It speaks no TLS,
	// and makes one connection per request. It is nil for a server at an address.
	Transport *http.Transport

	server   http.Server
	listener net.Listener
	stopped  chan struct{}
	conns    sync.WaitGroup
}

// Start serves one area in memory. Inside a testing/synctest bubble it has to be called there.
func (e *Engine) Start(area Area) *Server {
	l := memnet.Listen()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		if e.takeRefusal(area) {
			return nil, memnet.ErrRefused
		}
		return l.Dial(ctx)
	}
	s := serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.serve(w, r, area, e.nextButRefusals, nil)
	}))
	s.Transport = &http.Transport{
		DialContext:       dial,
		DialTLSContext:    dial,
		DisableKeepAlives: true, // a dial for each request, so that each can be refused
	}
	return s
}

func (e *Engine) takeRefusal(area Area) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	script := e.scripts[area]
	if len(script) == 0 || !script[0].Refuse {
		return false
	}
	e.scripts[area] = script[1:]
	return true
}

// nextButRefusals leaves refusals to the dials. With concurrent requests, a refusal may reach
// the head of the script when the connection already exists.
func (e *Engine) nextButRefusals(area Area) (Fault, bool) {
	script := e.scripts[area]
	for i, f := range script {
		if !f.Refuse {
			copy(script[1:i+1], script[:i])
			e.scripts[area] = script[1:]
			return f, true
		}
	}
	return Fault{}, false
}

// ListenTCP serves all three areas on addr: see [ListenLoopback].
func (e *Engine) ListenTCP(addr string) (*Server, error) {
	l, err := ListenLoopback(addr)
	if err != nil {
		return nil, err
	}
	return serve(l, e), nil
}

// ListenLoopback listens on addr, which is host:port with a loopback IP address
// or localhost as its host. Port 0 picks a free one.
func ListenLoopback(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("sandbox: %q is not a loopback address", addr)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return l, nil
}

func serve(l net.Listener, h http.Handler) *Server {
	s := &Server{listener: l, stopped: make(chan struct{})}
	s.server = http.Server{
		Handler:           h,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				s.conns.Add(1)
			case http.StateClosed, http.StateHijacked:
				s.conns.Done()
			}
		},
	}
	go func() {
		defer close(s.stopped)
		s.server.Serve(l)
	}()
	return s
}

// Addr returns the address that s listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// URL returns the base URL of all three areas.
func (s *Server) URL() string { return "http://" + s.Addr().String() }

// Close ends all connections and waits for their goroutines. It waits for Serve first: until
// then, new connections can arrive.
func (s *Server) Close() {
	s.listener.Close()
	<-s.stopped
	s.server.Close()
	s.conns.Wait()
	if s.Transport != nil {
		s.Transport.CloseIdleConnections()
	}
}
