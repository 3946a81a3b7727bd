package wire

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync"
	"time"
)

const (
	// longestWait is how long an unused connection waits for its request. Many servers close
	// unused connections after 2 s.
	longestWait = 1500 * time.Millisecond
	dialTimeout = 5 * time.Second // for a dial that no request waits for
	// spareShare bounds the connections that are ready or being dialled, for each write in
	// flight.
	spareShare = 3
	// quietTime is how long only the writes dial, after a dial failed or a connection was lost
	// before its request.
	quietTime = time.Minute
)

// ahead gives each write a connection of its own, which carries no other request before or
// after. A dial takes two round trips, so the next connections are dialled while a write is
// in flight:
//
//	write begins ─► dials the next ─┬─ one is ready ─────────────────────┬─► request, response ─► closed
//	                 │              └─ none is: dials, raises the depth ─┘
//	                 ▼
//	           ready, at most longestWait ─┬─► taken by a write
//	                                       ├─► too old: lowers the depth
//	                                       └─► the other side closed it: quiet
//
// The depth bounds how many connections are ready or being dialled. It grows until the dials
// keep up with the writes. It is zero if the writes are further apart than longestWait, so a
// client at rest holds no connection and no goroutine.
//
// http.Transport.NewClientConn makes the connections. They read while they wait, so they
// notice when the other side closes them. One case goes unnoticed: the other side closes a
// connection less than half a round trip before the request leaves. So once the other side has
// closed one early, or a dial has failed, each write dials for itself, for quietTime.
type ahead struct {
	transport *http.Transport
	proxy     func(*http.Request) (*url.URL, error)

	mu       sync.Mutex
	ready    []*spare // the youngest last
	dialling int
	inFlight int
	depth    int
	last     time.Time     // start of the last write
	dialTook time.Duration // duration of the last dial
	quiet    time.Time     // until then, each write dials for itself
}

// A spare is a connection for one request.
type spare struct {
	*http.ClientConn
	dialling
	began  time.Time // before the dial, because the other side may count from the first packet
	expiry *time.Timer
}

// A destination identifies the connections that can carry a request.
type destination struct{ scheme, address string }

// dialling travels in the context of a dial. It tells the transport the proxy, and returns
// the connection below TLS.
type dialling struct {
	to      destination
	proxy   *url.URL
	counted *countedConnection
	lost    func()
}

type dialKey struct{}

// connected records the connection before anything was written to it. If no proxy protocol
// and no handshake comes before the request, the connection is ready at once.
func (d *dialling) connected(c *countedConnection) {
	d.counted, c.lost = c, d.lost
	c.encrypted = d.to.scheme == "https" || d.proxy != nil && d.proxy.Scheme == "https"
	if !c.encrypted && (d.proxy == nil || d.proxy.Scheme == "http") {
		c.state.Store(waiting)
	}
}

func newAhead(t *http.Transport) *ahead {
	p := &ahead{transport: t, proxy: t.Proxy}
	if p.proxy == nil {
		p.proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
	// NewClientConn asks for the proxy of a made-up request, without the port and the path.
	// Return the proxy that was chosen for the write.
	t.Proxy = func(r *http.Request) (*url.URL, error) {
		if d, ok := r.Context().Value(dialKey{}).(*dialling); ok {
			return d.proxy, nil
		}
		return p.proxy(r)
	}
	return p
}

// send makes one round trip. body returns a new copy of the body; nil if it cannot be sent
// again.
func (p *ahead) send(req *http.Request, body func() io.ReadCloser) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.GetBody, req.Close = nil, true
	if !isDialable(req.URL) {
		return p.transport.RoundTrip(req)
	}
	d := dialling{to: destination{scheme: req.URL.Scheme, address: address(req.URL)}}
	var err error
	if d.proxy, err = p.proxy(req); err != nil {
		return Refuse(req, err)
	}
	s := p.begin(d.to)
	defer p.end()
	for {
		fresh := s == nil
		p.fill(d)
		if s, err = p.connect(req, s, d); err != nil {
			return Refuse(req, err)
		}
		before := s.counted.BytesWritten()
		resp, err := s.send(req)
		closedEarly := err != nil && req.Context().Err() == nil || err == nil && resp.StatusCode == http.StatusRequestTimeout
		if closedEarly && !fresh {
			p.beQuiet()
		}
		if err == nil || fresh || body == nil || s.counted.BytesWritten() > before || req.Context().Err() != nil {
			return resp, err
		}
		// The connection ended while it waited. The request has not failed: take another
		// connection.
		req.Body = body()
		s = p.take(d.to)
	}
}

// isDialable excludes addresses that a ClientConn handles differently from RoundTrip.
func isDialable(u *url.URL) bool {
	beyondASCII := func(b byte) bool { return b >= 0x80 }
	return u != nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && !slices.ContainsFunc([]byte(u.Host), beyondASCII)
}

func address(u *url.URL) string {
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
}

// connect dials unless s is given. It reports to the trace of the request, because a
// ClientConn does not.
func (p *ahead) connect(req *http.Request, s *spare, d dialling) (*spare, error) {
	ctx := req.Context()
	trace := httptrace.ContextClientTrace(ctx)
	if trace != nil && trace.GetConn != nil {
		trace.GetConn(d.to.address)
	}
	if ctx.Err() != nil {
		if s != nil {
			s.Close()
		}
		return nil, context.Cause(ctx)
	}
	info := httptrace.GotConnInfo{WasIdle: s != nil}
	if s != nil {
		info.IdleTime = time.Since(s.began)
	} else {
		var err error
		if s, err = p.dial(ctx, &spare{dialling: d}); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return nil, err
		}
	}
	if info.Conn = s.counted; trace != nil && trace.GotConn != nil {
		trace.GotConn(info)
	}
	return s, nil
}

// dial makes the connection of s, which is then ready for its request.
func (p *ahead) dial(ctx context.Context, s *spare) (_ *spare, err error) {
	s.began = time.Now()
	s.ClientConn, err = p.transport.NewClientConn(context.WithValue(ctx, dialKey{}, &s.dialling), s.to.scheme, s.to.address)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dialTook = time.Since(s.began); err != nil {
		p.beQuietLocked()
		return nil, err
	}
	s.counted.state.CompareAndSwap(unclaimed, waiting)
	return s, nil
}

// send makes the only round trip of the connection.
func (s *spare) send(req *http.Request) (*http.Response, error) {
	resp, err := s.RoundTrip(req)
	if err == nil && s.counted.state.Load() == spoilt {
		// The response came before the request, which was not written.
		resp.Body.Close()
		err = errSpoilt
	}
	if err != nil {
		s.Close()
		return Refuse(req, err)
	}
	return resp, nil
}

// begin registers a write and takes a connection for it.
func (p *ahead) begin(to destination) *spare {
	p.mu.Lock()
	defer p.mu.Unlock()
	gap := time.Since(p.last)
	p.last = time.Now()
	p.inFlight++
	s := p.takeLocked(to)
	switch {
	case max(gap, p.dialTook) >= longestWait, p.isQuiet():
		p.depth = 0 // a connection dialled now would be too old for the next write, or be lost
	case s == nil:
		p.depth = min(p.depth+1, spareShare*p.inFlight)
	}
	return s
}

func (p *ahead) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight--
}

func (p *ahead) take(to destination) *spare {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.takeLocked(to)
}

// takeLocked takes the youngest connection, so that surplus ones expire.
func (p *ahead) takeLocked(to destination) *spare {
	if p.isQuiet() {
		return nil
	}
	for i, s := range slices.Backward(p.ready) {
		if s.to == to && p.isUsable(s) {
			p.ready = slices.Delete(p.ready, i, i+1)
			s.expiry.Stop()
			return s
		}
	}
	return nil
}

func (p *ahead) isUsable(s *spare) bool {
	return s.counted.state.Load() == waiting && time.Since(s.began) < longestWait
}

func (p *ahead) isQuiet() bool { return time.Now().Before(p.quiet) }

// fill dials one connection if fewer than depth are usable.
func (p *ahead) fill(d dialling) {
	p.mu.Lock()
	defer p.mu.Unlock()
	usable := p.dialling
	for _, s := range p.ready {
		if p.isUsable(s) {
			usable++
		}
	}
	if usable < p.depth {
		p.dialling++
		go p.dialAhead(d)
	}
}

// dialAhead runs outside any call, with a timeout of its own.
func (p *ahead) dialAhead(d dialling) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	s := &spare{dialling: d}
	s.lost = func() { p.leave(s, true) }
	_, err := p.dial(ctx, s)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialling--
	if err != nil {
		return
	}
	if s.counted.state.Load() != waiting {
		p.beQuietLocked()
		return
	}
	p.ready = append(p.ready, s)
	s.expiry = time.AfterFunc(longestWait-time.Since(s.began), func() { p.leave(s, false) })
}

// leave removes a connection that no write took.
func (p *ahead) leave(s *spare, closed bool) {
	p.mu.Lock()
	i := slices.Index(p.ready, s)
	if i >= 0 {
		p.ready = slices.Delete(p.ready, i, i+1)
		p.depth = max(p.depth-1, 0)
		if closed {
			p.beQuietLocked()
		}
	}
	p.mu.Unlock()
	switch {
	case i < 0: // a write took it
	case closed:
		s.expiry.Stop() // net/http closes it, and may hold its lock now
	default:
		s.Close()
	}
}

func (p *ahead) beQuiet() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beQuietLocked()
}

func (p *ahead) beQuietLocked() { p.depth, p.quiet = 0, time.Now().Add(quietTime) }
