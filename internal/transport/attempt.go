package transport

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// An attempt is one request and how it ended.
type attempt struct {
	point    point
	sent     bool          // handed to the network
	queued   time.Duration // until then, for the limiter, a pause and a token
	witness  witness
	evidence Evidence
	header   http.Header // of the answer
	request  http.Header
	id       string // by which the service calls the request
	token    string
	body     []byte
	stream   io.ReadCloser
	length   int64
	framed   bool
	err      error // the cause, where the point needs one
}

const (
	maxErrorBody     = 64 << 10
	errorBodyTimeout = 5 * time.Second
)

var errNilResponse = errors.New("the HTTP transport returned neither a response nor an error")

// RoundTrip makes one attempt. It has no CloseIdleConnections beside it, so
// that go-retryablehttp cannot flush the connections of other calls.
func (r *run) RoundTrip(req *http.Request) (*http.Response, error) {
	a, before, arrived := &r.first, r.last, r.log.now()
	if before != nil {
		a = new(attempt)
	}
	r.last, r.waiting = a, false
	header, err := r.prepare(req, a)
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		if before != nil {
			// The call ends with the last answer, and with why it was not repeated.
			r.last, r.stopped, r.waiting = before, a, a.point == callerEnded
		}
		return nil, err
	}
	a.sent = true
	r.attempts++

	wire := req.Context()
	if r.call.Wire != nil {
		wire = r.call.Wire
	}
	ctx, cancel := context.WithCancelCause(wire)
	began, timer := time.Now(), alarm{cancel: cancel}
	if limit := r.settings.AttemptTimeout; limit > 0 {
		// A deadline that comes first needs no timer beside its own, if it comes.
		if deadline, ok := wire.Deadline(); !ok || wire.Done() == nil || r.call.Stream || began.Add(limit).Before(deadline) {
			timer.set(limit)
		}
	}
	w := &a.witness
	out := req.WithContext(w.watch(ctx))
	out.Header, a.request = header, header
	// Without GetBody neither net/http nor a redirect sends a body again.
	out.GetBody = nil
	a.queued = r.log.since(arrived)
	resp, err := r.client.roundTrip(out)
	if err == nil && resp == nil {
		err = errNilResponse
	}
	if err == nil {
		err = a.receive(ctx, r, resp, &timer)
	}
	a.evidence = w.report()
	a.evidence.Began, a.evidence.Ended = began, time.Now()
	if err != nil {
		resp = nil // net/http would log a complaint of a transport that returns both
		a.err = err
		switch {
		case wire.Err() != nil:
			a.point = callerEnded
		case context.Cause(ctx) == ErrTimeout:
			a.point = attemptTimedOut
		default:
			a.point = failurePoint(err, &a.evidence, w.flooded())
		}
	} else {
		a.evidence.StatusCode = resp.StatusCode
	}
	a.id = r.conceal(a, requestID(a.header))
	r.log.attempt(r.attempts, a)
	if a.stream == nil {
		timer.stop()
		cancel(nil)
	}
	return resp, err
}

// prepare waits for leave to send, and makes the request's header. What stops here
// was not sent.
func (r *run) prepare(req *http.Request, a *attempt) (http.Header, error) {
	ctx := req.Context()
	stop := func(p point, err error) error {
		a.point, a.err = p, err
		if ctx.Err() != nil {
			a.point = callerEnded
		}
		return err
	}
	if err := ctx.Err(); err != nil {
		return nil, stop(callerEnded, err)
	}
	// The source comes before the gate: a slow one would let attempts out together,
	// above the rate, or into a pause. A token that turns stale meanwhile is refused,
	// and renewed.
	if r.settings.Token != nil {
		if a.token = r.renewed; a.token == "" {
			token, err := askToken(ctx, r.settings.Token)
			if err != nil {
				return nil, stop(credentialFailed, err)
			}
			a.token = token
		}
	}
	if err := r.client.gate.pass(ctx, r.settings.Limiter); err != nil {
		return nil, stop(limiterRefused, err)
	}
	header := make(http.Header, 8)
	own := [...]string{r.settings.userAgent(), "Bearer " + a.token}
	header["User-Agent"] = own[:1:1]
	if r.call.Headers != nil {
		r.call.Headers(header)
	}
	// Those that the caller may not change are refused as options.
	for _, h := range r.settings.headers {
		header[h.name] = []string{h.value()}
	}
	if a.token != "" {
		header["Authorization"] = own[1:]
	}
	// The limiter and the source may not have looked.
	if err := ctx.Err(); err != nil {
		return nil, stop(callerEnded, err)
	}
	return header, nil
}

// receive takes in what the attempt was for. It leaves resp with a body that
// needs no reading, or with the stream. Its error means that no answer came.
func (a *attempt) receive(ctx context.Context, r *run, resp *http.Response, timer *alarm) error {
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	body := resp.Body
	a.header, a.point, a.length = resp.Header, statusPoint(resp.StatusCode), resp.ContentLength
	if a.header == nil {
		a.header = http.Header{}
	}
	a.framed = resp.ContentLength >= 0 || len(resp.TransferEncoding) > 0 || resp.ProtoMajor > 1
	if r.call.Stream && (resp.StatusCode == http.StatusOK || r.call.Partial && resp.StatusCode == http.StatusPartialContent) {
		if a.point = streamPoint(a.header); a.point == success {
			timer.stop()
			s := newStream(ctx, body, *timer, r)
			if resp.StatusCode == http.StatusPartialContent {
				s.offset = r.call.Offset
			}
			a.stream, resp.Body = s, s
			return nil
		}
	}
	defer body.Close()
	resp.Body = http.NoBody
	switch {
	case resp.StatusCode < 200:
		// The body of a protocol switch never ends.
	case a.point != success || r.call.Stream:
		timer.set(shorter(errorBodyTimeout, r.settings.AttemptTimeout))
		a.body, _ = readBounded(body, new(bytes.Buffer), maxErrorBody, -1)
		if a.point == success {
			a.point = statusUnusable
		}
	default:
		a.accept(ctx, body, r)
	}
	return nil
}

// accept reads and checks the body of a success.
func (a *attempt) accept(ctx context.Context, body io.Reader, r *run) {
	var buffer *bytes.Buffer
	if r.call.Decode == nil {
		buffer = new(bytes.Buffer)
	} else {
		buffer = buffers.Get().(*bytes.Buffer)
		defer func() {
			if buffer.Len() > 0 || len(a.body) == 0 { // or else it outgrew the buffer
				a.body = bytes.Clone(a.body) // nil if it was decoded
			}
			buffer.Reset()
			buffers.Put(buffer)
		}()
	}
	var err error
	a.body, err = readBounded(body, buffer, r.settings.MaxResponseBytes, a.length)
	switch {
	case isHTML(a.header, a.body):
		a.point = answerIsHTML
	case errors.Is(err, ErrResponseTooLarge):
		a.point = answerTooLarge
	case err != nil:
		a.point, a.err = answerCutOff, err
		switch {
		case r.call.Write:
		case isCorrupt(err):
			a.point = answerMalformed
		case context.Cause(ctx) == ErrTimeout:
			a.point = attemptTimedOut
		case ctx.Err() != nil:
			a.point = callerEnded
		}
	case isEncoded(a.header):
		a.point = answerEncoded
	case r.call.Decode == nil:
	default:
		if err := r.call.Decode(a.body); err != nil {
			a.point, a.err = answerMalformed, err
			break
		}
		a.body = nil
	}
}

// outcome is what became of a write by this attempt alone.
func (a *attempt) outcome() Outcome {
	switch {
	case !a.sent:
		return OutcomeNotSent
	case a.evidence.StatusCode == 0 && a.evidence.unsent():
		return OutcomeNotSent
	}
	return matrix[a.point].outcome
}

// isHTML recognises a page where data was due: a login, a block or an error
// page of something in between, whatever its status says.
func isHTML(h http.Header, body []byte) bool {
	mediaType, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(mediaType)) {
	case "text/html", "application/xhtml+xml":
		return true
	}
	// Looking for everything that a body could be takes its time.
	return bytes.HasPrefix(bytes.TrimLeft(body, "\t\n\f\r "), []byte("<")) &&
		strings.HasPrefix(http.DetectContentType(body), "text/html")
}

// isCorrupt tells a compressed body that arrived and cannot be unfolded from one
// that did not arrive.
func isCorrupt(err error) bool {
	var flaw flate.CorruptInputError
	return errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &flaw)
}

func isEncoded(h http.Header) bool {
	encoding := h.Get("Content-Encoding")
	return encoding != "" && !strings.EqualFold(encoding, "identity")
}

func streamPoint(h http.Header) point {
	switch {
	case isHTML(h, nil):
		return answerIsHTML
	case isEncoded(h):
		return answerEncoded
	}
	return success
}
