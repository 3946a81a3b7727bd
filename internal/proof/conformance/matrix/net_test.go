package matrix

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/conformance/operations"
)

// local is a world where the call ends before the network; a server is there to see
// that nothing arrives.
func local(change ...func(*site)) world { return wire(answer(200, cardsJSON), change...) }

func unusable(s *site) { s.unusable = true }

func with(opts ...bins.Option) func(*site) { return func(s *site) { s.opts = append(s.opts, opts...) } }

func source(f func(context.Context) (string, error)) func(*site) {
	return func(s *site) { s.token = bins.TokenFunc(f) }
}

// spent is a limiter that has no leave to give within an hour.
func spent(s *site) {
	l := rate.NewLimiter(rate.Every(time.Hour), 1)
	l.Allow()
	with(bins.WithLimiter(l))(s)
}

// renewing is a source that answers with another token each time.
func renewing(s *site) {
	var asked atomic.Int64
	source(func(context.Context) (string, error) {
		return "token-" + string(rune('a'+asked.Add(1))), nil
	})(s)
}

func ended(s *site) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.ctx = ctx
}

// dialing is a world that counts dials. Each ends as dial says. The HTTP
// transport is net/http's, so that its events are the true ones.
func dialing(dial func(ctx context.Context, network, address string) (net.Conn, error)) world {
	return func(t *testing.T) site {
		var dials atomic.Int64
		transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dials.Add(1)
			return dial(ctx, network, address)
		}}
		t.Cleanup(transport.CloseIdleConnections)
		return site{
			base: "https://service.test", http: &http.Client{Transport: transport},
			seen: func() int { return int(dials.Load()) },
		}
	}
}

func dialError(err error) world {
	return dialing(func(_ context.Context, network, _ string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	})
}

// refusedPort is a world of the library's own transport, at a port where nothing
// listens.
func refusedPort(*testing.T) site { return site{base: "http://127.0.0.1:1"} }

// resetAfter is a world where connections break once the client has read the
// service's bytes. A real reset could overtake them.
func resetAfter(bytes string) world {
	return func(t *testing.T) site {
		server := listen(t, serveScript(say(bytes)))
		s := dialing(func(ctx context.Context, network, _ string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, server.address)
			return &resetConn{c, len(bytes)}, err
		})(t)
		s.base, s.seen = "http://127.0.0.1", server.seenRequests
		return s
	}
}

type resetConn struct {
	net.Conn
	left int
}

func (c *resetConn) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// A deadConn takes so many bytes and fails the write of any further one.
type deadConn struct {
	net.Conn
	left int // bytes that still go out
}

func (c *deadConn) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	if n > 0 {
		if _, err := c.Conn.Write(p[:n]); err != nil {
			return 0, err
		}
	}
	if n == len(p) {
		return n, nil
	}
	return n, &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)}
}

// writing is a world where connections die after so many bytes.
func writing(left int) world {
	return func(t *testing.T) site {
		server := listen(t, func(_ *rawServer, c *net.TCPConn) { io.Copy(io.Discard, c) })
		s := dialing(func(ctx context.Context, network, _ string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, server.address)
			if err != nil {
				return nil, err
			}
			return &deadConn{c, left}, nil
		})(t)
		s.base = "http://127.0.0.1"
		return s
	}
}

// mute is a transport of the caller's that reports no events.
func mute(err error) world {
	return func(*testing.T) site {
		var asked atomic.Int64
		return site{
			base: "https://service.test",
			http: &http.Client{Transport: operations.RoundTripper(func(r *http.Request) (*http.Response, error) {
				asked.Add(1)
				if r.Body != nil {
					r.Body.Close()
				}
				return nil, err
			})},
			seen: func() int { return int(asked.Load()) },
		}
	}
}

var errMute = errors.New("a transport's own error")

func zipped(plain string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, plain)
	w.Close()
	return b.String()
}
