package testkit

import (
	"bufio"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A WireServer keeps the heads of requests as they are on the wire, and answers
// each connection once.
type WireServer struct {
	Base string

	mu    sync.Mutex
	heads []string
	open  map[net.Conn]bool
}

// ServeWire answers with whatever answer writes, and then closes the connection.
func ServeWire(t testing.TB, answer func(net.Conn)) *WireServer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &WireServer{Base: "http://" + l.Addr().String(), open: map[net.Conn]bool{}}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.open[c] = true
			s.mu.Unlock()
			serving.Go(func() {
				defer c.Close()
				if s.receive(c) {
					answer(c)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.mu.Lock()
		for c := range s.open {
			c.Close()
		}
		s.mu.Unlock()
		serving.Wait()
	})
	return s
}

// AnswerWire is ServeWire with one answer for all.
func AnswerWire(t testing.TB, answer string) *WireServer {
	return ServeWire(t, func(c net.Conn) { io.WriteString(c, answer) })
}

// receive reads a whole request and keeps its head.
func (s *WireServer) receive(c net.Conn) bool {
	r := bufio.NewReader(c)
	var head strings.Builder
	length := 0
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return false
		}
		head.WriteString(line)
		if line == "\r\n" {
			break
		}
		if name, value, _ := strings.Cut(line, ":"); textproto.CanonicalMIMEHeaderKey(name) == "Content-Length" {
			length, _ = strconv.Atoi(strings.TrimSpace(value))
		}
	}
	s.mu.Lock()
	s.heads = append(s.heads, head.String())
	s.mu.Unlock()
	_, err := io.CopyN(io.Discard, r, int64(length))
	return err == nil
}

// Received returns the heads so far and forgets them.
func (s *WireServer) Received() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	heads := s.heads
	s.heads = nil
	return heads
}
