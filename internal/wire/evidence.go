package wire

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// Evidence records what the connection's events prove about one attempt. It is exposed as
// refunds.Evidence.
type Evidence struct {
	Began           time.Time // when the attempt was handed to the network
	Ended           time.Time // when its response had arrived, or it failed
	Traced          bool      // the HTTP transport reported its events
	Connected       bool      // the request got a connection
	BytesWritten    int64     // bytes written to it; -1: not known
	RequestWritten  bool      // the whole request was handed to the connection
	ResponseStarted bool      // a first byte of a response arrived
	StatusCode      int       // of the response; 0: none
}

// Unsent reports whether the evidence proves that no byte of the request left.
//
// A refund is retried on this, so only proof counts. The trace events WroteHeaders and
// WroteRequest prove nothing: they may fire or not, regardless of the wire. An error's type
// proves nothing: the same "connection reset" comes before the first byte and after the last.
// The proof is that all connections are known and that none wrote a byte.
func (e Evidence) Unsent() bool {
	return e.Traced && e.BytesWritten == 0
}

// premature reports whether a response came before the whole request had left. size is a
// lower bound of the request. Such a response is not about this request: it comes from a
// proxy or belongs to another request. A response without a connection was made in this
// process, for example by a fake.
func (e Evidence) premature(size int64) bool {
	return e.Traced && e.Connected && (!e.RequestWritten || e.BytesWritten >= 0 && e.BytesWritten < size)
}

// An Exchange is one request on its way, and what is proven of it.
type Exchange struct {
	write bool          // nobody may process it twice
	body  []byte        // of a write
	out   *http.Request // the request as a wrapper got it; nil: there is no wrapper
	trace connTrace
}

func NewExchange(write bool, body []byte) Exchange {
	return Exchange{write: write, body: body, trace: connTrace{writeEnded: make(chan struct{}, 1)}}
}

// newBody returns a new copy of a write's body.
func (x *Exchange) newBody() io.ReadCloser { return io.NopCloser(bytes.NewReader(x.body)) }

// IsWrapped reports whether a wrapper got the request.
func (x *Exchange) IsWrapped() bool { return x.out != nil }

// Evidence returns the evidence so far. Read the body of the response first, because bytes may
// still leave while it arrives.
func (x *Exchange) Evidence() Evidence { return x.trace.evidence() }

// Connected is when the request last got a connection, handshake included; zero: not, or it is not known.
func (x *Exchange) Connected() (at time.Time) {
	x.trace.record(func() { at = x.trace.connected })
	return at
}

// AwaitWrite waits until writing the request has ended. A response can arrive microseconds
// before that event. If the request was not written whole, net/http gives up after 50
// milliseconds.
func (x *Exchange) AwaitWrite(ctx context.Context) {
	if !x.Evidence().Connected {
		return
	}
	select {
	case <-x.trace.writeEnded:
	case <-ctx.Done():
	case <-time.After(time.Second): // a transport without this event
	}
}

// CameEarly reports whether the response to a write began before the first byte of the request
// left, or, if that matters, before the whole request had left.
func (x *Exchange) CameEarly(e Evidence, whole bool) bool {
	size, unasked := int64(len(x.body)), false
	x.trace.record(func() {
		unasked = x.trace.unasked && e.Connected
		if x.IsWrapped() {
			size = min(size, x.trace.size) // a wrapper may have compressed the body
		}
	})
	return unasked || whole && e.premature(size)
}

// A connTrace collects the evidence of one attempt. The HTTP transport calls its hooks on its
// own goroutines, even after the attempt has ended.
type connTrace struct {
	mu         sync.Mutex
	seen       Evidence // except the byte count
	carriers   []carrier
	uncounted  bool          // a connection has no counter, or an unseen one may exist
	writeEnded chan struct{} // gets a value when writing the request ended, with or without an error
	entered    bool          // a write is below a wrapper now
	left       bool          // the wrapper has ended the attempt
	deadline   time.Time     // no write begins to leave after it; zero: none
	size       int64         // of a body that a wrapper may have changed
	connected  time.Time     // when the request last got a connection
	unasked    bool          // a response began before the request's first byte left
}

// A carrier is a connection that the request was given to, and the bytes it wrote before: a
// handshake, a proxy's protocol, or earlier requests.
type carrier struct {
	*countedConnection
	before int64
}

// withTrace returns a context that makes its requests report to t.
func (t *connTrace) withTrace(ctx context.Context) context.Context {
	// Got1xxResponse stays unset: with that hook, net/http no longer bounds how many
	// 1xx responses it reads.
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { t.record(func() { t.seen.Traced = true }) },
		GotConn: func(info httptrace.GotConnInfo) {
			own := counterOf(info.Conn)
			if own != nil {
				own.user.Store(t)
			}
			t.record(func() {
				t.seen.Traced, t.seen.Connected, t.connected = true, true, time.Now()
				switch {
				case own == nil:
					t.uncounted = true
				case t.left:
					own.refuse()
				default:
					t.carriers = append(t.carriers, carrier{own, own.BytesWritten()})
				}
			})
			select {
			case <-t.writeEnded: // from the connection before
			default:
			}
		},
		PutIdleConn: func(error) { t.record(t.release) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			t.record(func() { t.seen.RequestWritten = t.seen.RequestWritten || info.Err == nil })
			select {
			case t.writeEnded <- struct{}{}:
			default: // the value is there already
			}
		},
		GotFirstResponseByte: func() {
			t.record(func() {
				t.unasked = t.unasked || !t.seen.ResponseStarted && t.read().Unsent()
				t.seen.ResponseStarted = true
			})
		},
	})
}

func (t *connTrace) record(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
}

// evidence returns the evidence so far.
func (t *connTrace) evidence() (e Evidence) {
	t.record(func() { e = t.read() })
	return e
}

// release marks the last connection as idle, unless another attempt has taken it.
func (t *connTrace) release() {
	if n := len(t.carriers); n > 0 {
		t.carriers[n-1].user.CompareAndSwap(t, nobody)
	}
}

// read returns the evidence. -1 bytes means that the bytes were not counted.
func (t *connTrace) read() Evidence {
	e := t.seen
	if !e.Traced || t.uncounted {
		e.BytesWritten = -1
		return e
	}
	for _, c := range t.carriers {
		e.BytesWritten += c.BytesWritten() - c.before
	}
	return e
}

// enter admits a write to the network, unless it is there already or a byte of it has left.
// So a wrapper may only retry while nothing was sent. size is the body's size in the latest
// try.
func (t *connTrace) enter(size int64) (refused error) {
	t.record(func() {
		switch {
		case t.left:
			refused = errTooLate
		case t.entered || !t.read().Unsent():
			refused = ErrSentBefore
		default:
			t.entered, t.size = true, size
		}
	})
	return refused
}

// leave ends the attempt of a write: from now on no first byte leaves. So a wrapper cannot
// send a request unseen after it has returned.
func (t *connTrace) leave() {
	t.record(func() {
		t.left = true
		for _, c := range t.carriers {
			t.uncounted = t.uncounted || !c.hasBegunOrNeverWill()
		}
	})
}

// hasBegunOrNeverWill is false only at the moment when the first byte leaves.
func (c carrier) hasBegunOrNeverWill() bool {
	c.spoil()
	return c.BytesWritten() > c.before || c.state.Load() == spoilt
}
