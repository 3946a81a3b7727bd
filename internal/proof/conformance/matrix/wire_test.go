package matrix

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit"
)

// A script deals with one request that has been read whole, the nth from 0 on.
// It writes the answer's bytes; the connection is kept unless it closes it.
type script func(c *net.TCPConn, n int)

// A rawServer reads requests and answers bytes, valid or not.
type rawServer struct {
	address     string
	connections atomic.Int64
	requests    atomic.Int64
}

func (s *rawServer) seenRequests() int    { return int(s.requests.Load()) }
func (s *rawServer) seenConnections() int { return int(s.connections.Load()) }

// listen hands every connection to serve, and ends them all with the test.
func listen(t *testing.T, serve func(*rawServer, *net.TCPConn)) *rawServer {
	t.Helper()
	s := &rawServer{}
	s.address = testkit.Listen(t, func(c net.Conn) {
		s.connections.Add(1)
		serve(s, c.(*net.TCPConn))
	})
	return s
}

// serveScript reads the requests of a connection and runs the script on each.
func serveScript(run script) func(*rawServer, *net.TCPConn) {
	return func(s *rawServer, c *net.TCPConn) {
		in := bufio.NewReader(c)
		for {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				return
			}
			run(c, int(s.requests.Add(1))-1)
		}
	}
}

// wire is a world where the service runs the script.
func wire(run script, opts ...func(*site)) world {
	return func(t *testing.T) site {
		server := listen(t, serveScript(run))
		s := site{base: "http://" + server.address, seen: server.seenRequests}
		for _, change := range opts {
			change(&s)
		}
		return s
	}
}

// connection is a world that counts connections. None gets as far as a request.
func connection(scheme string, serve func(*net.TCPConn)) world {
	return func(t *testing.T) site {
		server := listen(t, func(_ *rawServer, c *net.TCPConn) { serve(c) })
		return site{base: scheme + "://" + server.address, seen: server.seenConnections}
	}
}

// say answers with exactly these bytes, and keeps the connection.
func say(bytes string) script {
	return func(c *net.TCPConn, _ int) { io.WriteString(c, bytes) }
}

// sayAndClose answers with these bytes and ends the connection in order.
func sayAndClose(bytes string) script {
	return func(c *net.TCPConn, n int) { say(bytes)(c, n); c.Close() }
}

// in runs one script after another, the last for good.
func in(turn ...script) script {
	return func(c *net.TCPConn, n int) { turn[min(n, len(turn)-1)](c, n) }
}

// reset breaks the connection with a RST.
func reset(c *net.TCPConn, _ int) {
	c.SetLinger(0)
	c.Close()
}

// resetConnection breaks a connection once its client has begun to speak.
func resetConnection(c *net.TCPConn) {
	c.Read(make([]byte, 1))
	reset(c, 0)
}

func closeConnection(c *net.TCPConn) {
	c.Read(make([]byte, 1))
	c.CloseWrite()
	io.Copy(io.Discard, c)
}

// answer is an answer in good form.
func answer(status int, body string, header ...string) script {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\nContent-Length: %d\r\n", status, http.StatusText(status), len(body))
	for _, line := range header {
		b.WriteString(line + "\r\n")
	}
	return say(b.String() + "\r\n" + body)
}

// status answers every request with a status and an empty object.
func status(code int, header ...string) world {
	if code == http.StatusNotModified {
		return wire(say("HTTP/1.1 304 Not Modified\r\n\r\n"))
	}
	return wire(answer(code, "{}", header...))
}

// flood writes until the client has had enough.
func flood(head, line string) script {
	return func(c *net.TCPConn, _ int) {
		_, err := io.WriteString(c, head)
		for err == nil {
			_, err = io.WriteString(c, line)
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		c.Close()
	}
}
