package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/sandbox/memnet"
)

// A peer is a service in memory that counts its connections and requests.
type peer struct {
	listener *memnet.Listener
	dialTook time.Duration
	onDial   func()                        // nil: none
	limit    atomic.Int64                  // how long a connection may wait for its request, as a time.Duration; 0: without end
	secure   bool                          // it speaks TLS
	proxy    string                        // the scheme of the proxy before it; "": none
	greets   atomic.Bool                   // it responds before there is a request
	early    bool                          // it responds before the body of a request
	refuses  atomic.Bool                   // it refuses connections
	handle   func(net.Conn, *http.Request) // nil: it accepts

	dials    atomic.Int64
	open     atomic.Int64
	connects atomic.Int64 // CONNECT requests
	requests atomic.Int64
	writes   atomic.Int64
	own      atomic.Int64 // the requests that a wrapper added

	mu      sync.Mutex
	waiting map[net.Conn]bool // for a request
}

const accepted = "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"

// client returns a client of the peer, for the same bubble.
func (p *peer) client(t *testing.T, opts ...Option) *Client {
	p.listener, p.waiting = memnet.Listen(), map[net.Conn]bool{}
	t.Cleanup(func() { p.listener.Close() })
	base, config := "http://127.0.0.1", (*tls.Config)(nil)
	if p.secure {
		base = "https://127.0.0.1"
	}
	if p.secure || p.proxy == "https" {
		a := newAuthority(t)
		config = &tls.Config{Certificates: []tls.Certificate{a.issue(t)}}
		opts = append([]Option{WithTLSConfig(&tls.Config{RootCAs: a.pool})}, opts...)
	}
	go func() {
		for {
			c, err := p.listener.Accept()
			if err != nil {
				return
			}
			go p.serve(c, config)
		}
	}()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		p.dials.Add(1)
		time.Sleep(p.dialTook)
		if p.onDial != nil {
			p.onDial()
		}
		if p.refuses.Load() {
			return nil, memnet.ErrRefused
		}
		return p.listener.Dial(ctx)
	}
	return clientOf(t, base, append([]Option{over(dial)}, opts...)...)
}

func (p *peer) serve(c net.Conn, config *tls.Config) {
	p.open.Add(1)
	defer p.open.Add(-1)
	if p.proxy == "https" {
		c = tls.Server(c, config)
	}
	if p.secure {
		if p.proxy != "" {
			if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil && r.Method == http.MethodConnect && r.Header.Get("Proxy-Authorization") != "" {
				p.connects.Add(1)
				io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
			}
		}
		c = tls.Server(c, config)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	if p.greets.Load() {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n4111111111111111")
	}
	p.wait(c, true)
	if limit := time.Duration(p.limit.Load()); limit > 0 {
		c.SetReadDeadline(time.Now().Add(limit))
	}
	_, err := in.Peek(1)
	p.wait(c, false)
	if err != nil {
		return
	}
	c.SetReadDeadline(time.Time{})
	request, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	if p.early {
		io.WriteString(c, accepted)
		time.Sleep(time.Second)
		return
	}
	if _, err := io.Copy(io.Discard, request.Body); err != nil {
		return
	}
	if p.requests.Add(1); request.Method == http.MethodPost {
		p.writes.Add(1)
	}
	if request.URL.Path == "/token" {
		p.own.Add(1)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
		return
	}
	if p.handle != nil {
		p.handle(c, request)
		return
	}
	time.Sleep(30 * time.Millisecond)
	io.WriteString(c, accepted)
	if n, err := in.Discard(1); n > 0 || err == nil {
		panic("a connection carried a second request")
	}
}

func (p *peer) wait(c net.Conn, waits bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting[c] = waits; !waits {
		delete(p.waiting, c)
	}
}

// endWaiting ends the connections that carry no request.
func (p *peer) endWaiting(says string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.waiting {
		io.WriteString(c, says)
		c.Close()
	}
}

// submit makes n writes. It returns the time within which three of four were answered.
func submit(t *testing.T, c *Client, n int, gap time.Duration) time.Duration {
	t.Helper()
	var took []time.Duration
	for range n {
		began := time.Now()
		r := c.Do(t.Context(), write(), nil)
		if took = append(took, time.Since(began)); r.Failure != nil || r.Evidence.BytesWritten < 50 || !r.Evidence.Connected || !r.Evidence.RequestWritten {
			t.Fatalf("%v, %+v", r.err(), r.Evidence)
		}
		time.Sleep(gap)
	}
	slices.Sort(took)
	return took[n*3/4]
}

// A write to a host that a wrapper chose takes no connection to another one.
func TestAheadKeepsHostsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := map[string]*peer{"127.0.0.1:80": {}, "other.test:80": {}}
		for address, p := range peers {
			p.client(t)
			p.handle = func(c net.Conn, r *http.Request) {
				if r.Host+":80" != address {
					t.Errorf("a request to %s went to %s", r.Host, address)
				}
				io.WriteString(c, accepted)
			}
		}
		n := 0
		inTurn := around(func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			if n++; n%2 == 0 {
				r.URL.Host, r.Host = "other.test", "other.test"
			}
			return base.RoundTrip(r)
		})
		dial := func(ctx context.Context, _, address string) (net.Conn, error) {
			return peers[address].listener.Dial(ctx)
		}
		submit(t, clientOf(t, "http://127.0.0.1", over(dial), inTurn), 20, 0)
		time.Sleep(2 * time.Second) // no connection waits for long
	})
}

// Writes in a row do not wait for their connections, and neither do concurrent ones. Few
// connections are made in vain, and a client at rest holds none.
func TestAheadTakesOneRoundTrip(t *testing.T) {
	for _, test := range []struct {
		callers int
		gap     time.Duration
		n       int
		took    time.Duration
		most    int64 // connections
	}{
		{1, 0, 60, 30 * time.Millisecond, 66},
		{1, 50 * time.Millisecond, 40, 30 * time.Millisecond, 43},
		{1, time.Second, 12, 30 * time.Millisecond, 14},
		{1, 3 * time.Second, 5, 90 * time.Millisecond, 5},
		{8, 0, 50, 30 * time.Millisecond, 450},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{dialTook: 60 * time.Millisecond}
			c := p.client(t)
			var all sync.WaitGroup
			for range test.callers {
				all.Go(func() {
					if took := submit(t, c, test.n, test.gap); took != test.took {
						t.Errorf("every %v: %v", test.gap, took)
					}
				})
			}
			if all.Wait(); p.dials.Load() > test.most {
				t.Errorf("every %v: %d connections for %d", test.gap, p.dials.Load(), test.callers*test.n)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if p.open.Load() != 0 {
				t.Errorf("every %v: at rest %d connections", test.gap, p.open.Load())
			}
			before := p.dials.Load()
			if took := submit(t, c, 1, 2*time.Second); took != 90*time.Millisecond || p.dials.Load() != before+1 {
				t.Errorf("every %v: after a rest %v, %d connections", test.gap, took, p.dials.Load()-before)
			}
		})
	}
}

// If the service refuses connections, or ends them before their requests, only writes dial. So
// at most one request goes into a connection that is about to end. A minute later, connections
// are dialled ahead again.
func TestAheadIsQuiet(t *testing.T) {
	for name, test := range map[string]struct {
		refuses bool
		limit   time.Duration
		fail    int
	}{
		"refuses": {true, 0, 100}, "ends them at once": {false, 1, 100}, "ends them soon": {false, 300 * time.Millisecond, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{dialTook: time.Millisecond}
			c := p.client(t, WithMaxRetries(0))
			submit(t, c, 10, 0)
			p.refuses.Store(test.refuses)
			p.limit.Store(int64(test.limit))
			before, failed := p.dials.Load(), 0
			for i := range 100 {
				next := time.Now().Add(300*time.Millisecond - time.Duration(i%21-10)*200*time.Microsecond)
				if r := c.Do(t.Context(), write(), nil); r.Failure != nil {
					failed++
				}
				time.Sleep(time.Until(next))
			}
			if got := p.dials.Load() - before; got > 104 || failed > test.fail {
				t.Errorf("%s: %d dials for 100 writes, %d failed", name, got, failed)
			}
			p.refuses.Store(false)
			p.limit.Store(0)
			before = p.dials.Load()
			time.Sleep(time.Minute)
			if p.dials.Load() != before {
				t.Errorf("%s: the client dials without a write", name)
			}
			if took := submit(t, c, 20, 100*time.Millisecond); took != 30*time.Millisecond {
				t.Errorf("%s: once it is over, a write takes %v", name, took)
			}
			time.Sleep(2 * time.Second)
		})
	}
}

// A connection may end after a write took it and before the first byte left. The write then
// uses another connection, and data from the ended one is no response. If a wrapper has
// replaced the body, the write is proven unsent.
func TestSpoiltConnectionIsReplaced(t *testing.T) {
	for _, says := range []string{"", "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"} {
		for name, wrapper := range map[string]Option{
			"passes on": around(passesOn), "makes another request": around(remade("new with its context")), "": WithMaxRetries(0),
		} {
			for _, secure := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					printed := processLog(t)
					p := &peer{dialTook: time.Millisecond, secure: secure}
					c := p.client(t, WithMaxRetries(0), wrapper)
					submit(t, c, 3, 100*time.Millisecond)
					ended := false
					ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
						if !ended {
							ended = true
							p.endWaiting(says)
							synctest.Wait()
						}
					}})
					before := p.requests.Load()
					r := c.Do(ctx, write(), nil)
					want := fault.OutcomeAccepted
					if name == "makes another request" {
						want = fault.OutcomeNotSent
					}
					arrived := p.requests.Load() - before
					if r.Outcome != want || r.StatusCode == http.StatusOK || r.Attempts != 1 || (arrived == 1) != (want == fault.OutcomeAccepted) || arrived == 1 && (!r.Evidence.RequestWritten || r.Evidence.BytesWritten < 50) {
						t.Errorf("%s, TLS %t, %q: %v, %+v, %v, arrived %d times", name, secure, says, r.Outcome, r.Evidence, r.err(), arrived)
					}
					time.Sleep(2 * time.Second)
					// Over TLS, only net/http distinguishes a response from a session ticket.
					if text := printed(); text != "" && !secure {
						t.Errorf("%q: printed %q", says, text)
					}
				})
			}
		}
	}
}

// A write is not sent again after a byte of it has left, even if its connection was dialled
// ahead and may have ended before.
func TestBegunWriteIsNotSentAgain(t *testing.T) {
	for name, option := range map[string]Option{"no wrapper": WithMaxRetries(0), "a wrapper": around(passesOn)} {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{}
			p.handle = func(c net.Conn, _ *http.Request) {
				if p.requests.Load() <= 3 {
					io.WriteString(c, accepted)
				}
			}
			c := p.client(t, WithMaxRetries(0), option)
			submit(t, c, 3, 100*time.Millisecond)
			if r := c.Do(t.Context(), write(), nil); r.Outcome != fault.OutcomeUnknown || p.requests.Load() != 4 {
				t.Errorf("%s: %v, arrived %d times", name, r.Outcome, p.requests.Load()-3)
			}
			time.Sleep(2 * time.Second)
		})
	}
}

// Data on an unused connection does not reach the log of the process. net/http would print it
// there.
func TestUnsolicitedResponsesAreNotPrinted(t *testing.T) {
	for _, secure := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			printed := processLog(t)
			p := &peer{secure: secure, handle: func(c net.Conn, _ *http.Request) {
				io.WriteString(c, accepted)
				time.Sleep(time.Millisecond)
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n4111111111111111")
				time.Sleep(time.Millisecond)
			}}
			read := write()
			read.Write = false
			c := p.client(t)
			for range 3 {
				if r := c.Do(t.Context(), read, nil); r.Failure != nil {
					t.Error(r.err())
				}
				time.Sleep(100 * time.Millisecond)
			}
			if text := printed(); text != "" || p.dials.Load() != 3 || p.open.Load() != 0 {
				t.Errorf("TLS %t: printed %q, %d connections", secure, text, p.dials.Load())
			}
			// Now the service responds as soon as it is connected.
			if p.greets.Store(true); !secure {
				for range 5 {
					c.Do(t.Context(), write(), nil)
				}
				if text := printed(); text != "" {
					t.Errorf("printed %q", text)
				}
			}
			time.Sleep(time.Minute)
		})
	}
}

// processLog collects the text of the log of the process.
func processLog(t *testing.T) func() string {
	var mu sync.Mutex
	var text strings.Builder
	log.SetOutput(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return text.Write(p)
	}))
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return text.String()
	}
}

// Reads use a connection again, until it was idle for ConnectionReuse.
func TestKeptConnectionsStayKept(t *testing.T) {
	for _, secure := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{secure: secure, handle: func(c net.Conn, _ *http.Request) {
				in := bufio.NewReader(c)
				for io.WriteString(c, accepted); ; io.WriteString(c, accepted) {
					if r, err := http.ReadRequest(in); err != nil {
						return
					} else if _, err := io.Copy(io.Discard, r.Body); err != nil {
						return
					}
				}
			}}
			c := p.client(t)
			read := write()
			read.Write = false
			for range 5 {
				if r := c.Do(t.Context(), read, nil); r.Failure != nil {
					t.Error(r.err())
				}
				time.Sleep(time.Second)
			}
			time.Sleep(58 * time.Second)
			if p.dials.Load() != 1 || p.open.Load() != 1 {
				t.Errorf("TLS %t: %d connections for 5 reads, %d open", secure, p.dials.Load(), p.open.Load())
			}
			if time.Sleep(2 * time.Second); p.open.Load() != 0 {
				t.Errorf("TLS %t: an idle connection stays open", secure)
			}
		})
	}
}

// Connections are dialled ahead through a proxy, too. The proxy function is called once for
// each write, with the request of the write.
func TestAheadThroughAProxy(t *testing.T) {
	for _, proxy := range []string{"http", "https", ""} {
		for _, secure := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				p, asked := &peer{dialTook: 60 * time.Millisecond, secure: secure, proxy: proxy}, 0
				c := p.client(t, WithProxy(func(r *http.Request) (*url.URL, error) {
					if asked++; r.Method != http.MethodPost || r.URL.Path == "" {
						t.Errorf("asked for %s %v", r.Method, r.URL)
					}
					if proxy == "" {
						return nil, nil
					}
					return url.Parse(proxy + "://name:password@127.0.0.1:3128")
				}))
				took := submit(t, c, 10, 100*time.Millisecond)
				if took != 30*time.Millisecond || asked != 10 || p.dials.Load() > 12 || (p.connects.Load() >= 10) != (secure && proxy != "") {
					t.Errorf("%q, TLS %t: %v, asked %d times, %d dials, %d CONNECTs", proxy, secure, took, asked, p.dials.Load(), p.connects.Load())
				}
				time.Sleep(2 * time.Second)
			})
		}
	}
}

// A write that ends before it has its connection leaves none open, also one that was ready for it.
func TestEndedWriteLeavesNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, late := &peer{}, atomic.Bool{}
		c := p.client(t, around(func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			if late.Load() {
				<-r.Context().Done()
			}
			return base.RoundTrip(r)
		}))
		submit(t, c, 3, 0)
		late.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r := c.Do(ctx, write(), nil); r.Outcome != fault.OutcomeNotSent {
			t.Errorf("%v, %v", r.Outcome, r.err())
		}
		time.Sleep(time.Minute)
		if n := p.open.Load(); n != 0 {
			t.Errorf("%d connections are open", n)
		}
	})
}
