package transport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"time"

	"github.com/carddata/carddata-go/internal/auth"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/flow"
	"github.com/carddata/carddata-go/internal/wire"
)

// An attempt is one request and how it ended.
type attempt struct {
	Result   // the result of a call that ends with this attempt, as far as it is known
	verdict  *fault.Verdict
	err      error // the cause, for verdicts that have one
	sent     bool  // handed to the network
	arrived  time.Time
	queued   time.Duration     // time spent before sending: token, limiter, pause, place and BeforeSend
	ended    time.Time         // its response was read, or it failed
	release  func(flow.Result) // gives its place in flight back; further calls do nothing
	exchange wire.Exchange
	request  http.Header
	token    string
	away     bool           // redirected to another host than the service's
	vouched  *fault.Verdict // that the caller's word makes a refusal; nil: none
}

const (
	errorBodyTimeout = 5 * time.Second
	forever          = time.Duration(math.MaxInt64) // in place of a timeout of zero
)

// RoundTrip makes one attempt: http.Client calls it for each request of the
// retry loop, and for each redirect that is followed.
//
// The invocation has no CloseIdleConnections on purpose. With it, go-retryablehttp would
// close the idle connections of all calls after each failed call. With WithHTTPClient these
// are the connections of the caller's whole program.
func (inv *invocation) RoundTrip(req *http.Request) (*http.Response, error) {
	// A redirect comes here as well. It gets a verdict of its own, and the response that led
	// to it no longer matters.
	a, before := &attempt{exchange: wire.NewExchange(inv.call.Write, inv.call.Body), arrived: time.Now(), release: func(flow.Result) {}}, inv.current
	defer func() { a.release(flow.Result{}) }() // also if the caller's code panics
	isRetry := inv.retryDue
	inv.current, inv.retryDue = a, false
	a.verdict, a.err = inv.prepare(req, a, before != nil)
	a.queued = time.Since(a.arrived)
	inv.queued += a.queued
	if a.err != nil {
		if inv.ctx.Err() != nil { // prepare was waiting when the context ended
			a.verdict = fault.CallerEnded
		}
		if before != nil {
			// The call ends with the last response and the reason why no other attempt
			// followed.
			inv.current, inv.unsent, inv.retryDue = before, a, a.verdict == fault.CallerEnded
		}
		return wire.Refuse(req, a.err)
	}
	a.sent = true
	if inv.client.throttle.Resumes(inv.call.Account) {
		inv.event(slog.LevelInfo, "resume")
	}
	if isRetry {
		inv.logRetry(before)
	}
	inv.attempts++
	if inv.call.Observe != nil {
		inv.call.Observe(inv.attempts, nil)
	}
	resp, err := inv.send(req, a)
	inv.leaves(a)
	return resp, err
}

// prepare waits until the attempt may be sent, and makes its header. After an error, the
// attempt was not sent.
func (inv *invocation) prepare(req *http.Request, a *attempt, retry bool) (stopped *fault.Verdict, err error) {
	if err := inv.ctx.Err(); err != nil {
		return nil, err
	}
	if stopped, err := inv.down(); err != nil {
		return stopped, err
	}
	// Get the token before the throttle: behind it, a slow source would let attempts out
	// together, above the rate or into a pause. A token that expires in the throttle is
	// refused, and refreshed.
	a.away = !sameOrigin(req.URL, inv.origin)
	if inv.settings.source != nil && !a.away {
		if a.token = inv.freshToken; a.token == "" {
			if a.token, stopped, err = inv.token(inv.ctx, ""); err != nil {
				return stopped, err
			}
		}
	}
	if stopped, err = inv.client.throttle.Wait(inv.ctx, inv.call.Account, inv.settings.Limiter, inv.settings.random, inv.patience()); err != nil {
		return stopped, err
	}
	a.request = inv.header(a)
	if err := inv.ctx.Err(); err != nil {
		return nil, err
	}
	return inv.enter(a, retry)
}

// maxPatience bounds how long a bulk call waits for the caller's code. A source or limiter
// that hangs is then a failure like others, and the loop pauses.
const maxPatience = time.Minute

func (inv *invocation) patience() time.Duration {
	if inv.call.Bulk {
		return maxPatience
	}
	return 0
}

// token gets a token. If refused is not empty, it asks for a replacement of that token.
func (inv *invocation) token(ctx context.Context, refused string) (string, *fault.Verdict, error) {
	if inv.call.Bulk {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, maxPatience)
		defer cancel()
	}
	return auth.Ask(ctx, inv.settings.source, refused)
}

// send hands the request to the network and gives the attempt its verdict.
//
// The order matters. Read the body before the evidence, because bytes may still leave while a
// response arrives. Read the evidence before the verdict, which may depend on it. Stop the
// timer last, unless a stream still uses it.
func (inv *invocation) send(req *http.Request, a *attempt) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(cmp.Or(inv.call.RequestContext, inv.ctx))
	began := time.Now()
	timer := time.AfterFunc(inv.timeout, func() { cancel(fault.ErrTimeout) })
	defer func() { // also when the caller's code panics, such as a transport
		if a.Stream == nil {
			timer.Stop()
			cancel(nil)
		}
	}()
	out := req.WithContext(ctx)
	out.Header = a.request
	// With GetBody, net/http resends the body on its own: on another connection when a kept
	// one turns out to be dead, and to the target of a 307. A refund would be sent twice,
	// unseen.
	out.GetBody = nil
	if body := inv.call.Body; body != nil && !inv.call.Write {
		// net/http may resend a read. It has to if a server regularly closes HTTP/2
		// connections.
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	resp, err := inv.client.network.Send(out, &a.exchange)
	if err == nil && resp == nil {
		err = errors.New("the HTTP transport returned neither a response nor an error")
	}
	if err == nil {
		inv.receive(ctx, cancel, timer, a, out.URL, resp)
		if a.ended.IsZero() {
			a.ended = time.Now()
		}
		if inv.call.Write {
			a.exchange.AwaitWrite(ctx)
		}
	}
	if wire := inv.call.RequestContext; wire != nil && wire.Err() != nil {
		<-inv.ctx.Done() // it ends at the same moment, and knows why
	}
	a.Evidence = a.exchange.Evidence()
	if a.ended.IsZero() {
		a.ended = time.Now()
	}
	a.Evidence.Began, a.Evidence.Ended, a.Evidence.StatusCode = began, time.Now(), a.StatusCode
	if err != nil {
		resp = nil // net/http logs a complaint if a transport returns both
		a.verdict, a.err = fault.JudgeError(ctx, err, fault.Sighting{Traced: a.Evidence.Traced, Connected: a.Evidence.Connected, ResponseStarted: a.Evidence.ResponseStarted, Wrapped: a.exchange.IsWrapped()}), err
	}
	a.RequestID = inv.loggable(a, requestID(a.Header))
	if inv.call.Write && err == nil {
		inv.confirm(a)
	}
	if check := inv.settings.NotReady; check != nil && a.StatusCode != 0 && a.verdict != fault.Success && check(inv.failure(a)) {
		a.verdict, a.err = fault.NotReady, nil
	}
	inv.logAttempt(a)
	return resp, err
}

// confirm checks the response to a write again. A response that began before the first byte
// of the request left belongs to something else: the request may have been processed after
// it. An acceptance counts only if it came after the whole request. Then the caller's
// WriteCheck decides.
func (inv *invocation) confirm(a *attempt) {
	check := inv.settings.WriteCheck
	switch accepted := a.outcome() == fault.OutcomeAccepted; {
	case a.exchange.CameEarly(a.Evidence, accepted):
		a.verdict = fault.PrematureResponse
	case accepted && check != nil:
		result := inv.resultOf(a)
		if err := check(&result); err != nil {
			a.verdict, a.err = fault.ResponseRefused, err
		}
	}
}

// receive reads the response. It leaves resp with an empty body, so that the loop does not
// drain it, or with the stream.
func (inv *invocation) receive(ctx context.Context, cancel context.CancelCauseFunc, timer *time.Timer, a *attempt, from *url.URL, resp *http.Response) {
	// A caller's transport, such as a fake, may leave Body nil. net/http never does.
	body := cmp.Or[io.ReadCloser](resp.Body, http.NoBody)
	defer func() {
		if a.Stream == nil {
			body.Close()
		}
	}()
	a.StatusCode, a.Header, a.Length = resp.StatusCode, resp.Header, resp.ContentLength
	// Without any of these, the body ends when the connection ends, and a broken connection
	// looks the same.
	a.Framed = resp.ContentLength >= 0 || len(resp.TransferEncoding) > 0 || resp.ProtoMajor > 1
	asks := inv.asks()
	asks.URL = from
	a.verdict = fault.JudgeResponse(asks, resp.StatusCode, a.Header)
	if slices.Contains(inv.settings.Refusals, resp.StatusCode) && a.verdict.Outcome == fault.OutcomeUnknown {
		a.vouched = a.verdict
	}
	if a.verdict == fault.Success && inv.call.Stream && a.StatusCode != http.StatusNotModified {
		s := &stream{inv: inv, ctx: ctx, cancel: cancel, body: body, reader: body, timer: timer, began: time.Now()}
		if a.StatusCode != http.StatusPartialContent { // a part of the content may look like a page or an error object
			a.verdict, a.Body = s.verdict(a.Header)
		}
		if timer.Stop(); a.verdict == fault.Success {
			a.Stream, resp.Body = s, s
			return
		}
	}
	resp.Body = http.NoBody
	switch {
	case a.StatusCode < 200 || a.Body != nil:
		// The body of a protocol switch never ends. A page or an error object has been read.
	case a.verdict == fault.Success:
		inv.accept(ctx, body, a)
	default:
		// The status decides. The body only adds detail, so do not wait long for it.
		timer.Reset(min(errorBodyTimeout, inv.timeout))
		a.Body, _ = readBounded(body, new(bytes.Buffer), fault.MaxErrorBody, -1)
	}
}

// outcome is the outcome of a write after this attempt alone. The evidence comes before the
// verdict, because bytes are proof.
func (a *attempt) outcome() fault.Outcome {
	if !a.sent || a.StatusCode == 0 && a.Evidence.Unsent() {
		return fault.OutcomeNotSent
	}
	if a.isVouched() {
		return fault.OutcomeRejected
	}
	return a.verdict.Outcome
}

// isVouched reports whether the caller's word makes this attempt refused. It does not if something
// else than the status has decided.
func (a *attempt) isVouched() bool { return a.vouched != nil && a.vouched == a.verdict }

// reason is why the attempt failed, in safe words.
func (a *attempt) reason() error { return a.verdict.Reason(a.err, a.sent) }

// asks says what the response has to answer.
func (inv *invocation) asks() fault.Request {
	return fault.Request{Write: inv.call.Write, Stream: inv.call.Stream, Partial: inv.call.Partial, Conditional: inv.call.Conditional}
}

// accept reads and checks the body of a success. It decodes here, inside the retry loop,
// because a malformed body is retried.
func (inv *invocation) accept(ctx context.Context, body io.ReadCloser, a *attempt) {
	buffer := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	a.Body, a.err = readBounded(body, buffer, inv.settings.MaxResponseBytes, a.Length)
	a.ended = time.Now()
	// Let waiting requests leave before this response is decoded, so that the service works
	// meanwhile. Otherwise responses arrive in bursts.
	if inv.call.Bulk {
		runtime.Gosched()
	}
	a.verdict = fault.JudgeBody(ctx, inv.asks(), a.Header, a.Body, a.err)
	if a.verdict == fault.Success && inv.call.Decode != nil {
		if a.err = inv.call.Decode(a.Body); a.err != nil {
			a.verdict = fault.MalformedResponse
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
