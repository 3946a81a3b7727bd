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

// Listen hands each connection to serve, on a goroutine of its own, and ends them all with
// the test. It returns its address.
func Listen(t testing.TB, serve func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var serving sync.WaitGroup
	open, ended := []net.Conn{}, false
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			if open = append(open, c); ended {
				c.Close()
			}
			mu.Unlock()
			serving.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		ended = true
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	return l.Addr().String()
}

// A WireServer keeps the heads of requests as they are on the wire, and answers
// each connection once.
type WireServer struct {
	Base string

	mu    sync.Mutex
	heads []string
}

// ServeWire answers with what answer writes, and then closes the connection.
func ServeWire(t testing.TB, answer func(net.Conn)) *WireServer {
	t.Helper()
	s := &WireServer{}
	s.Base = "http://" + Listen(t, func(c net.Conn) {
		if s.receive(c) {
			answer(c)
		}
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
