package wire

import (
	"context"
	"mime"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/carddata/carddata-go/internal/fault"
)

// A wrapped network is the library's transport below a RoundTripper of the caller. The
// wrapper may replace the context or URL of a request, rebuild it, send it twice or later, or
// respond to it itself. The promises about writes must still hold, so evidence is collected
// and requests are refused below the wrapper. One rule decides:
//
//	                                         belongs to a      belongs to a       belongs to no
//	the request                              live attempt      past attempt       attempt
//	has a body that may be a write           is that write     refused            refused
//	has none, or a form that asks for a      sent              sent               sent
//	token
//
// "Is that write" holds for any URL, because a wrapper that fails over to another host
// changes it. A write is sent only if no byte of it has left before. The rule applies once
// the client has made its first write. Reads may be sent twice.
type wrapped struct {
	transport *http.Transport
	writes    *ahead
	top       http.RoundTripper // the caller's RoundTripper, around this one
	exchanges sync.Map          // by the Cancel channel of their requests, until their contexts end
	hasWrites atomic.Bool
}

// An exchangeKey finds the exchange in the context of its request.
type exchangeKey struct{}

var (
	ErrSentBefore = fault.NewError("the request was sent before, and is not sent twice")
	errTooLate    = fault.NewError("the attempt that the request belongs to has ended")
	errRedirected = fault.NewError("a redirect of a write is not followed")
	ErrNoAttempt  = fault.NewError("a wrapper of the transport has to keep the context or the Cancel channel of the request, and needs another client for its own requests with a body")
)

// send hands the request of an exchange to the wrapper.
//
// The request carries its exchange in two places, because a wrapper may replace the context.
// Cancel is deprecated, so wrappers do not set it. Clone and WithContext copy it, and it ends
// the request on the wire even if the context was replaced.
func (w *wrapped) send(req *http.Request, x *Exchange) (*http.Response, error) {
	if x.write {
		w.hasWrites.Store(true)
	}
	x.trace.seen.Traced = true // a wrapper that responds itself has sent nothing
	ctx := context.WithValue(req.Context(), exchangeKey{}, x)
	out := req.WithContext(ctx)
	//lint:ignore SA1019 as said above
	out.Cancel = ctx.Done()
	x.out = out
	w.exchanges.Store(ctx.Done(), x)
	context.AfterFunc(ctx, func() { w.exchanges.Delete(ctx.Done()) })
	defer x.trace.leave()
	return w.top.RoundTrip(out)
}

// RoundTrip is what the wrapper calls.
func (w *wrapped) RoundTrip(req *http.Request) (*http.Response, error) {
	x := w.exchangeOf(req)
	switch {
	case req.Response != nil && w.hasWrites.Load(): // an http.Client in the wrapper follows it
		return Refuse(req, errRedirected)
	case x == nil && w.hasWrites.Load() && mayBeWrite(req):
		return Refuse(req, ErrNoAttempt)
	case x == nil:
		return w.transport.RoundTrip(req)
	case !x.write:
		return w.transport.RoundTrip(req.WithContext(x.trace.withTrace(req.Context())))
	}
	if err := x.trace.enter(req.ContentLength); err != nil {
		return Refuse(req, err)
	}
	defer x.trace.record(func() { x.trace.entered = false })
	// The end of the attempt ends the request, even if the wrapper has replaced its context.
	ctx, cancel := context.WithCancelCause(x.trace.withTrace(req.Context()))
	over := x.out.Context()
	context.AfterFunc(over, func() { cancel(context.Cause(over)) })
	out := req.WithContext(ctx)
	if req.Body == x.out.Body && req.ContentLength == x.out.ContentLength {
		return w.writes.send(out, x.newBody)
	}
	return w.writes.send(out, nil)
}

// exchangeOf finds the exchange of a request. It returns nil for a request of the wrapper
// itself, which may use the context of an exchange, too.
func (w *wrapped) exchangeOf(req *http.Request) *Exchange {
	//lint:ignore SA1019 see send
	found, linked := w.exchanges.Load(req.Cancel)
	if !linked {
		found = req.Context().Value(exchangeKey{})
	}
	x, _ := found.(*Exchange)
	if x == nil || x.isFor(req) || linked && !x.write || x.write && mayBeWrite(req) {
		return x
	}
	return nil
}

// isFor ignores the query, because a wrapper may add one to sign the request.
func (x *Exchange) isFor(req *http.Request) bool {
	return req.Method == x.out.Method && req.URL.Host == x.out.URL.Host && req.URL.Path == x.out.URL.Path
}

// mayBeWrite reports whether a request may be a rebuilt write. The writes of all services are
// JSON. A token request is a form or has no body.
func mayBeWrite(req *http.Request) bool {
	if req.Body == nil || req.Body == http.NoBody {
		return false
	}
	mediaType, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
	return mediaType != "application/x-www-form-urlencoded"
}
