package wire

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/carddata/carddata-go/internal/fault"
)

// A wrapped network is the library's transport below a RoundTripper of the caller. The
// wrapper may change a request, rebuild it, send it twice or later, or respond to it itself. The
// promises about writes must still hold, so evidence is collected and requests are refused below
// the wrapper. The context alone tells which attempt a request belongs to:
//
//   - In the context of a write's attempt it is that write, whatever its method, URL and body are.
//     It is sent if no byte of it has left before, and the attempt goes on.
//   - In the context of a read's attempt it is sent, also twice.
//   - In another context it is sent if the client has made no write. Otherwise it may be one.
type wrapped struct {
	transport *http.Transport
	writes    *ahead
	top       http.RoundTripper // the caller's RoundTripper, around this one
	hasWrites atomic.Bool
}

// An exchangeKey finds the exchange in the context of its request.
type exchangeKey struct{}

var (
	ErrSentBefore = fault.NewError("the request was sent before, and is not sent twice")
	errTooLate    = fault.NewError("the attempt that the request belongs to has ended")
)

// send hands the request of an exchange to the wrapper.
func (w *wrapped) send(req *http.Request, x *Exchange) (*http.Response, error) {
	if x.write {
		w.hasWrites.Store(true)
	}
	x.trace.seen.Traced = true // a wrapper that responds itself has sent nothing
	x.out = req.WithContext(context.WithValue(req.Context(), exchangeKey{}, x))
	defer x.trace.leave()
	return w.top.RoundTrip(x.out)
}

// RoundTrip is what the wrapper calls.
func (w *wrapped) RoundTrip(req *http.Request) (*http.Response, error) {
	x, _ := req.Context().Value(exchangeKey{}).(*Exchange)
	switch {
	case x == nil && w.hasWrites.Load():
		return Refuse(req, fault.ErrContextDropped)
	case x == nil:
		return w.transport.RoundTrip(req)
	case !x.write:
		return w.transport.RoundTrip(req.WithContext(x.trace.withTrace(req.Context())))
	}
	if err := x.trace.enter(req.ContentLength); err != nil {
		return Refuse(req, err)
	}
	defer x.trace.record(func() { x.trace.entered = false })
	// The end of the attempt ends the request, even if the wrapper took only the values of its
	// context.
	ctx, cancel := context.WithCancelCause(x.trace.withTrace(req.Context()))
	over := x.out.Context()
	context.AfterFunc(over, func() { cancel(context.Cause(over)) })
	out := req.WithContext(ctx)
	if req.Body == x.out.Body && req.ContentLength == x.out.ContentLength {
		return w.writes.send(out, x.newBody)
	}
	return w.writes.send(out, nil)
}
