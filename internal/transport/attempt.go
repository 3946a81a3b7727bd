package transport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// An attempt is one request and how it ended. What it needs of its call is
// here too, for the transport below a wrapper, which meets it alone.
type attempt struct {
	Result  // what a call that ends with this attempt returns, as far as it is known
	verdict *verdict
	err     error         // the cause, where the verdict needs one
	sent    bool          // handed to the network
	queued  time.Duration // until then, for the limiter, a cooldown and a token
	trace   connTrace
	write   bool          // of the call
	out     *http.Request // as a wrapper got it
	request http.Header
	token   string
	away    bool // redirected to another host than the service's
}

const (
	maxErrorBody     = 64 << 10
	errorBodyTimeout = 5 * time.Second
	forever          = time.Duration(math.MaxInt64) // in place of a timeout of zero
)

// RoundTrip makes one attempt: http.Client calls it for each request of the
// retry loop, and for each redirect that is followed.
//
// The invocation has no CloseIdleConnections on purpose. With it,
// go-retryablehttp would flush the connections of all other calls after each
// call that failed, and with WithHTTPClient those of the caller's whole program.
func (inv *invocation) RoundTrip(req *http.Request) (*http.Response, error) {
	// A redirect comes here as well: it has a verdict of its own, and the response that
	// led to it is of no more interest.
	a, before, arrived := &attempt{trace: connTrace{writeEnded: make(chan struct{}, 1)}}, inv.current, time.Now()
	inv.current, inv.retryDue = a, false
	if a.verdict, a.err = inv.prepare(req, a); a.err != nil {
		if inv.ctx.Err() != nil { // whatever it was waiting for
			a.verdict = callerEnded
		}
		if before != nil {
			// The call ends with the last response, and with why there was no other.
			inv.current, inv.unsent, inv.retryDue = before, a, a.verdict == callerEnded
		}
		return refuse(req, a.err)
	}
	a.sent, a.write, a.queued = true, inv.call.Write, time.Since(arrived)
	inv.attempts++
	if inv.call.Observe != nil {
		inv.call.Observe(inv.attempts, nil)
	}
	return inv.send(req, a)
}

// harmless headers go along to another host, and may be repeated in a log. Any other
// may be a credential.
var harmless = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Content-Type": true, "If-None-Match": true, "If-Modified-Since": true, "If-Range": true, "Range": true, "User-Agent": true,
}

// prepare waits for leave to send, and makes the request's header. What stops here, with
// an error and what it is due to, was not sent.
//
// The header is made anew for each attempt, from nothing: what http.Client copied from
// the request before, or for a redirect, is not used. So a token is never older than
// its attempt, and another host gets what is meant for it alone.
func (inv *invocation) prepare(req *http.Request, a *attempt) (stopped *verdict, err error) {
	if err := inv.ctx.Err(); err != nil {
		return nil, err
	}
	// The token comes before the throttle: a slow source behind it would let
	// attempts out together, above the rate, or into a cooldown. A token that turns
	// stale meanwhile is refused, and refreshed.
	a.away = !sameOrigin(req.URL, inv.origin)
	if inv.settings.credential != nil && !a.away {
		if a.token = inv.freshToken; a.token == "" {
			if a.token, err = inv.settings.credential.token(inv.ctx, ""); err != nil {
				return credentialFailed, err
			}
		}
	}
	if err := inv.client.throttle.wait(inv.ctx, inv.settings); err != nil {
		return limiterRefused, err
	}
	header := make(http.Header, 8)
	header["User-Agent"] = []string{strings.TrimSpace(inv.settings.UserAgent + library())}
	if inv.call.Headers != nil {
		inv.call.Headers(header)
	}
	if a.away {
		maps.DeleteFunc(header, func(name string, _ []string) bool { return !harmless[name] })
	} else {
		// Those that the caller must not change are refused as options.
		for name, value := range inv.settings.headers {
			header[name] = []string{value()}
		}
	}
	if a.token != "" {
		header["Authorization"] = []string{"Bearer " + a.token}
	}
	a.request = header
	return nil, inv.ctx.Err() // the limiter and the source may not have looked
}

// send hands the request to the network and gives the attempt its verdict.
//
// The order matters. The body is read before the evidence, as bytes may still be
// written while a response arrives. The evidence comes before the verdict, which may
// rest on it; and the timer is stopped after both, unless a stream goes on to use it.
func (inv *invocation) send(req *http.Request, a *attempt) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(cmp.Or(inv.call.RequestContext, inv.ctx))
	began := time.Now()
	timer := time.AfterFunc(inv.timeout, func() { cancel(ErrTimeout) })
	defer func() { // also if the caller's own code panics, such as a transport
		if a.Stream == nil {
			timer.Stop()
			cancel(nil)
		}
	}()
	out := req.WithContext(ctx)
	out.Header = a.request
	// With GetBody, net/http would send the body again by itself: on another
	// connection when a kept one turns out to be dead, and to the target of a 307. A
	// refund would be sent twice, and nobody would know.
	out.GetBody = nil
	if body := inv.call.Body; body != nil && !inv.call.Write {
		// A read may be sent again, and has to be where a server ends HTTP/2 connections
		// as a matter of course: net/http does so if it can.
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	resp, err := inv.client.network(out, a)
	if err == nil && resp == nil {
		err = errors.New("the HTTP transport returned neither a response nor an error")
	}
	if err == nil {
		inv.receive(ctx, cancel, timer, a, resp)
		if a.write {
			a.trace.awaitWrite(ctx)
		}
	}
	a.Evidence = a.trace.evidence()
	a.Evidence.Began, a.Evidence.Ended, a.Evidence.StatusCode = began, time.Now(), a.StatusCode
	if err != nil {
		resp = nil // a transport may return both, of which net/http complains in the process's log
		a.verdict, a.err = failureVerdict(ctx, err, &a.Evidence, a.out != nil, a.trace.asked.Load()), err
	}
	a.RequestID = inv.loggable(a, requestID(a.Header))
	if a.write && a.outcome() == OutcomeAccepted {
		inv.confirm(a)
	}
	inv.logAttempt(a)
	if inv.call.Drift.Listening && !a.away {
		inv.reportDrift(a)
	}
	inv.adapt(a)
	return resp, err
}

// confirm looks twice at a write that was accepted by its status: its request must
// have left before the response came, and the caller may know more of what an
// acceptance looks like.
func (inv *invocation) confirm(a *attempt) {
	size := int64(len(inv.call.Body))
	if a.out != nil {
		a.trace.record(func() { size = min(size, a.trace.size) }) // a wrapper may have compressed it
	}
	if a.Evidence.premature(size) {
		a.verdict = prematureResponse
	} else if check := inv.settings.WriteCheck; check != nil {
		result := inv.resultOf(a)
		if err := check(&result); err != nil {
			a.verdict, a.err = responseRefused, err
		}
	}
}

// receive takes in what the attempt was for. It leaves resp with a body that
// needs no reading, so that the loop does not drain it, or with the stream.
func (inv *invocation) receive(ctx context.Context, cancel context.CancelCauseFunc, timer *time.Timer, a *attempt, resp *http.Response) {
	// A transport of the caller's, a fake for example, may leave out what net/http never
	// does.
	body := cmp.Or[io.ReadCloser](resp.Body, http.NoBody)
	defer func() {
		if a.Stream == nil {
			body.Close()
		}
	}()
	a.StatusCode, a.Header, a.Length = resp.StatusCode, resp.Header, resp.ContentLength
	// Without any of these the end of the body is the end of the connection, however that
	// came about.
	a.Framed = resp.ContentLength >= 0 || len(resp.TransferEncoding) > 0 || resp.ProtoMajor > 1
	a.verdict = responseVerdict(inv.call, inv.settings, resp.StatusCode, a.Header)
	if a.verdict == success && inv.call.Stream && a.StatusCode != http.StatusNotModified {
		s := &stream{inv: inv, ctx: ctx, cancel: cancel, body: body, reader: body, timer: timer, began: time.Now()}
		if a.StatusCode == http.StatusPartialContent {
			s.offset = inv.call.Offset // and a part of a content is no error, whatever it looks like
		} else if a.Body = s.peek(a.Length); a.Body != nil {
			a.verdict = errorObject
		}
		if timer.Stop(); a.verdict == success {
			a.Stream, resp.Body = s, s
			return
		}
	}
	resp.Body = http.NoBody
	switch {
	case a.StatusCode < 200 || a.StatusCode == http.StatusNotModified || a.Body != nil:
		// There is no body, or it has been read. That of a protocol switch never ends.
	case a.verdict == success:
		inv.accept(ctx, body, a)
	default:
		// It is worth having, and not worth waiting for: the status is what counts.
		timer.Reset(min(errorBodyTimeout, inv.timeout))
		a.Body, _ = readBounded(body, new(bytes.Buffer), maxErrorBody, -1)
	}
}

// accept reads and checks the body of a success. It decodes here, and not once the
// loop has ended, because a body that is not the documented one is retried.
func (inv *invocation) accept(ctx context.Context, body io.ReadCloser, a *attempt) {
	// Requests that are ready leave before a response is decoded, so that the service works
	// meanwhile. Or all responses would come at once, and then none until the next ones do.
	if inv.call.Bulk {
		runtime.Gosched()
	}
	buffer := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	a.Body, a.err = readBounded(body, buffer, inv.settings.MaxResponseBytes, a.Length)
	a.verdict = bodyVerdict(ctx, inv.call, a.Header, a.Body, a.err)
	if a.verdict == success && inv.call.Decode != nil {
		if a.err = inv.call.Decode(a.Body); a.err != nil {
			a.verdict = malformedResponse
			return
		}
		a.Body = nil
		if inv.call.KeepBody != nil {
			inv.call.KeepBody(buffer)
		} else {
			ReleaseBody(buffer)
		}
	}
}

// buffers hold responses until they are decoded. To allocate each anew would take a
// sixth of the time of a lookup. One huge response must not hold its memory for as long
// as the process lives.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const maxPooled = 256 << 10

// ReleaseBody takes back what a call was given to keep.
func ReleaseBody(buffer *bytes.Buffer) {
	if buffer.Cap() <= maxPooled {
		buffers.Put(buffer)
	}
}

// readBounded reads at most limit bytes, and fails beyond; limit 0 is none.
func readBounded(body io.ReadCloser, buffer *bytes.Buffer, limit, length int64) ([]byte, error) {
	limit = cmp.Or(limit, math.MaxInt64)
	if 0 < length && length <= min(limit, maxPooled) { // the announced length is the other side's word
		buffer.Grow(int(length) + bytes.MinRead)
	}
	// It grows with what has arrived. A compressed body is counted as it is unpacked, so
	// that a small one cannot become a huge one.
	_, err := buffer.ReadFrom(http.MaxBytesReader(nil, body, limit))
	if is[*http.MaxBytesError](err) {
		err = ErrResponseTooLarge
	}
	return buffer.Bytes(), err
}

// library names this module in its version as the program was built with it, after a
// space, so that a call without a name of the caller's makes no new text.
var library = sync.OnceValue(func() string {
	version := "devel"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "github.com/carddata/carddata-go" && module.Version != "" && module.Version[0] == 'v' {
				version = module.Version
			}
		}
	}
	return " carddata-go/" + version + " " + runtime.Version()
})
