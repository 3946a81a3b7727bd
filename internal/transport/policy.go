package transport

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"syscall"
)

// Outcome is what became of a write. It is exposed as refunds.Outcome.
type Outcome int

// The zero value is the one to be careful with, so that a forgotten assignment
// errs on the safe side.
const (
	OutcomeUnknown Outcome = iota
	OutcomeNotSent
	OutcomeRejected
	OutcomeAccepted
)

// String is exposed as the method of refunds.Outcome.
func (o Outcome) String() string {
	names := map[Outcome]string{OutcomeNotSent: "not sent", OutcomeRejected: "rejected", OutcomeAccepted: "accepted"}
	return cmp.Or(names[o], "unknown")
}

// A verdict is how one attempt ended, and what follows from that. Every way in
// which an attempt can end is one of those below, and no other.
type verdict struct {
	// retries are how often one call retries after this verdict. For a write that is
	// how often, and never whether it is safe: see invocation.mayRetry.
	retries int
	// outcome is what became of a write that got this response. Where there was no
	// response the evidence can improve Unknown to NotSent: see attempt.outcome.
	outcome   Outcome
	condition error  // for errors.Is
	msg       string // for the error's text and the log
}

// unlimited retries are bounded by the settings, the retry budget and the
// deadline alone.
const unlimited = math.MaxInt

// The verdicts are the retry policy, and the only place that decides what an attempt
// meant. An outage is worth waiting out (unlimited); a 500 may be a bug that
// this very request triggers (2); a status that says what is wrong with the
// request will say so again (0).
//
// Writes follow one principle: retry on proof, not on hope. 408, 500, 502, 503
// and 504 come from proxies that gave up as often as from the service itself, and
// do not tell whether the service has processed the request.
var (
	success = &verdict{0, OutcomeAccepted, nil, "success"}

	// Nothing was sent: a further attempt would be refused by the same limiter or source,
	// and the caller is free to make the call again.
	limiterRefused = &verdict{0, OutcomeNotSent, ErrLocalLimit, "the local rate limiter refused to send"}
	// Before the attempt, or after it: where a token was refused, and the source has no
	// other, the service has not processed the request.
	credentialFailed = &verdict{0, OutcomeRejected, ErrCredential, "no credential"}
	callerEnded      = &verdict{0, OutcomeUnknown, nil, "the caller's context ended"}

	// The evidence, and not this column, says whether the write was sent: a connection
	// that could not be made is Unknown here, and NotSent by its evidence.
	hostNotFound     = &verdict{0, OutcomeUnknown, ErrNoResponse, "no response: the host name does not exist"}
	hostLookupFailed = &verdict{unlimited, OutcomeUnknown, ErrNoResponse, "no response: the host name could not be looked up"}
	connectFailed    = &verdict{unlimited, OutcomeUnknown, ErrNoResponse, "no response: no connection could be made"}
	handshakeFailed  = &verdict{0, OutcomeUnknown, ErrNoResponse, "no response: the TLS handshake failed"}
	// A proxy refuses for its own reasons, which may pass, or by a rule, which does not.
	proxyRefused     = &verdict{1, OutcomeUnknown, ErrNoResponse, "no response: the proxy could not connect"}
	proxyForbids     = &verdict{0, OutcomeUnknown, ErrForbidden, "no response: the proxy forbids the connection or wants a login"}
	connectionBroken = &verdict{unlimited, OutcomeUnknown, ErrNoResponse, "no response: the connection broke"}
	// Without events nothing is ever proven unsent.
	transportFailed = &verdict{unlimited, OutcomeUnknown, ErrNoResponse, "no response: the HTTP transport failed, its own error is the Cause"}
	// An attempt takes its full timeout each time, so that few fit into a call.
	attemptTimedOut = &verdict{2, OutcomeUnknown, ErrTimeout, "no response within the attempt timeout"}
	garbledResponse = &verdict{1, OutcomeUnknown, ErrBadResponse, "the response is not HTTP, or its header is too large"}

	// The service has looked at the request, and would say the same again.
	requestRefused  = &verdict{0, OutcomeRejected, ErrBadRequest, "refused"}
	requestTooLarge = &verdict{0, OutcomeRejected, ErrTooLarge, "refused as too large"}
	// Retried only with another token, see invocation.refreshToken.
	unauthorized = &verdict{1, OutcomeRejected, ErrUnauthorized, "refused"}
	forbidden    = &verdict{0, OutcomeRejected, ErrForbidden, "refused"}
	notFound     = &verdict{0, OutcomeRejected, ErrNotFound, "refused"}
	conflict     = &verdict{0, OutcomeRejected, ErrConflict, "refused"}
	// A 408 may come from a proxy that had passed the request on.
	requestTimeout = &verdict{2, OutcomeUnknown, ErrTimeout, "failed"}
	// 421 and 425 promise that the request was not processed (RFC 9110, 15.5.20;
	// RFC 8470, 5.2), and so does a 429 by its meaning. Each has a row, as retries are
	// counted by row.
	misdirected = &verdict{1, OutcomeRejected, ErrBadRequest, "refused"}
	tooEarly    = &verdict{1, OutcomeRejected, ErrBadRequest, "refused"}
	rateLimited = &verdict{unlimited, OutcomeRejected, ErrRateLimited, "refused"}
	// Of a 502, 503 and 504 a read is repeated as long as it is allowed to, and a write
	// never, unless the caller has vouched for it.
	serverFailed      = &verdict{2, OutcomeUnknown, ErrServer, "failed"}
	serverUnavailable = &verdict{unlimited, OutcomeUnknown, ErrServer, "failed"}
	// A 501 or 505 is about the method or the protocol, which the next attempt shares.
	notSupported = &verdict{0, OutcomeRejected, ErrServer, "refused"}
	// A 303 is how some services say "done, the result is over there".
	redirectAsGet      = &verdict{0, OutcomeUnknown, ErrRedirect, "a redirect, not followed"}
	redirectSameMethod = &verdict{0, OutcomeRejected, ErrRedirect, "a redirect, not followed"}

	// From here on the response is of no use, whatever its status.
	unexpectedStatus = &verdict{0, OutcomeUnknown, ErrBadResponse, "unexpected status"}
	// A login or block page with status 200 comes from something in between.
	htmlResponse = &verdict{0, OutcomeUnknown, ErrBadResponse, "the response is an HTML page"}
	// Of writes alone. The response cannot be about a request that was not there yet.
	prematureResponse = &verdict{0, OutcomeUnknown, ErrBadResponse, "the response came before the request had been sent"}
	// Whatever the status says: a proxy, or a service, that answers errors with a 200.
	errorObject = &verdict{0, OutcomeUnknown, ErrBadResponse, "the response is an error object, in spite of its status"}
	// Asking again would only be given the same receipt, or record a second refund.
	responseRefused = &verdict{0, OutcomeUnknown, ErrBadResponse, "the caller's check refused the response"}
	// From here on the status was a success, and a write is accepted by its status.
	// What the settings do not accept, they will not accept next time.
	encodedResponse  = &verdict{0, OutcomeAccepted, ErrBadResponse, "the response has a content encoding that was not asked for"}
	responseTooLarge = &verdict{0, OutcomeAccepted, ErrResponseTooLarge, "the response exceeds the size limit"}
	// A cut-off body is a broken connection, and an unreadable one perhaps a broken proxy.
	truncatedResponse = &verdict{unlimited, OutcomeAccepted, ErrBadResponse, "the response was cut off"}
	malformedResponse = &verdict{1, OutcomeAccepted, ErrBadResponse, "the response is not the documented JSON"}
)

// statusVerdict judges a response by its status alone. A status that has no line of its
// own means what its class means (RFC 9110, 15).
func statusVerdict(status int) *verdict {
	return cmp.Or(statusVerdicts[status], classVerdicts[status/100], unexpectedStatus)
}

var classVerdicts = map[int]*verdict{2: success, 4: requestRefused, 5: serverFailed}

var statusVerdicts = map[int]*verdict{
	301: redirectAsGet, 302: redirectAsGet, 303: redirectAsGet,
	307: redirectSameMethod, 308: redirectSameMethod,
	401: unauthorized,
	403: forbidden, 407: forbidden,
	404: notFound, 410: notFound,
	408: requestTimeout,
	409: conflict,
	413: requestTooLarge, 414: requestTooLarge, 431: requestTooLarge,
	421: misdirected, 425: tooEarly,
	429: rateLimited,
	501: notSupported, 505: notSupported,
	502: serverUnavailable, 503: serverUnavailable, 504: serverUnavailable,
}

// responseVerdict judges a response before its body is read. A stream is judged by its
// header, too: its content is the caller's from the first byte on.
func responseVerdict(call *Call, s *Settings, status int, h http.Header) *verdict {
	streamed := call.Stream && (status == http.StatusOK || call.Partial && status == http.StatusPartialContent)
	switch {
	case call.Conditional && status == http.StatusNotModified:
		return success
	case streamed && isHTML(h, nil) && !s.HTMLContent:
		return htmlResponse
	case streamed && isEncoded(h) && !s.EncodedContent:
		return encodedResponse
	case call.Stream && !streamed && status/100 == 2:
		return unexpectedStatus
	}
	return statusVerdict(status)
}

// bodyVerdict judges the body of a success, and the error of reading it. A write that
// the service has accepted by its status stays accepted though its receipt broke off,
// unless what there is of it begins as an error.
func bodyVerdict(ctx context.Context, call *Call, h http.Header, body []byte, err error) *verdict {
	switch {
	case isHTML(h, body):
		return htmlResponse
	case err == nil && isEncoded(h):
		return encodedResponse
	case err == nil && isErrorObject(body):
		return errorObject
	case err == nil:
		return success
	case err == ErrResponseTooLarge:
		return responseTooLarge
	case call.Write && mayBeErrorObject(body) && bytes.Contains(body, []byte(`"error"`)):
		return errorObject
	case call.Write:
		return truncatedResponse
	// A compressed body that arrived whole and cannot be decompressed; others broke off.
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), is[flate.CorruptInputError](err):
		return malformedResponse
	case ctx.Err() != nil:
		return endedVerdict(ctx)
	}
	return truncatedResponse
}

// endedVerdict tells what ended the context of an attempt: its timeout, or the caller.
func endedVerdict(ctx context.Context) *verdict {
	if context.Cause(ctx) == ErrTimeout {
		return attemptTimedOut
	}
	return callerEnded
}

// failureVerdict judges an attempt without a response. It decides how often a
// read is retried and what the error says. It must never decide whether a write
// is safe to retry: error types and texts do not tell what reached the wire, and
// the evidence does.
func failureVerdict(ctx context.Context, err error, e *Evidence, wrapped, asked bool) *verdict {
	proxy, refusedByProxy := errors.AsType[*proxyRefusal](err)
	dns, unresolved := errors.AsType[*net.DNSError](err)
	switch {
	case ctx.Err() != nil:
		return endedVerdict(ctx)
	// The proxy first: what it refuses looks like a connection that could not be made.
	case refusedByProxy && proxy.status/100 == 4 && proxy.status != http.StatusRequestTimeout && proxy.status != http.StatusTooManyRequests:
		return proxyForbids
	case refusedByProxy:
		return proxyRefused
	case handshakeRefusal(err) != "":
		return handshakeFailed
	case unresolved && dns.IsNotFound:
		return hostNotFound
	case unresolved:
		return hostLookupFailed
	// A wrapper that fails before it asked for a connection, or although a response began,
	// has its own reasons, which only its own error knows. So has a function of the
	// caller's tls.Config, whose error is none of the network's.
	case !e.Traced, wrapped && !asked, !isBroken(err) && (wrapped && e.ResponseStarted || !e.Connected && !is[net.Error](err)):
		return transportFailed
	case !e.Connected:
		return connectFailed
	case e.ResponseStarted && !isBroken(err):
		return garbledResponse
	}
	return connectionBroken
}

// handshakeRefusal says which side refused a TLS handshake, and what; "" if none did.
// Those are the failures that the next attempt would meet again: a certificate, a
// protocol or a cipher. A connection that breaks during the handshake is not one of
// them. The texts of alerts are a closed list of crypto/tls; those of the other errors
// hold names, and are replaced.
func handshakeRefusal(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		return "the other side refused the TLS handshake: " + strings.TrimPrefix(op.Err.Error(), "tls: ")
	}
	record, notTLS := errors.AsType[tls.RecordHeaderError](err)
	certificate, invalid := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case notTLS && string(record.RecordHeader[:]) == "HTTP/":
		return "the port speaks http and not https"
	case notTLS:
		return "the port does not speak TLS"
	case is[x509.UnknownAuthorityError](err):
		return "the certificate is not from an authority that this side trusts"
	case is[x509.HostnameError](err):
		return "the certificate is for another host name"
	case invalid && certificate.Reason == x509.Expired:
		return "the certificate has expired, or is not valid yet by this machine's clock"
	case invalid || is[*tls.CertificateVerificationError](err):
		return "the certificate was refused by this side"
	}
	return ""
}

// ownRefusal makes what a check of the caller's tls.Config refused the refusal of a
// certificate, which is for good. The handshake returns the error of a check as it is,
// and nothing would tell it from one of the network.
func ownRefusal(err error) error {
	if err == nil {
		return nil
	}
	return NewError("no response: the tls.Config's own check refused the connection, its error is the Cause", &tls.CertificateVerificationError{Err: err}, err)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// isBroken tells a connection that ended in the middle of a response from a
// peer that wrote something other than HTTP.
func isBroken(err error) bool {
	return is[*net.OpError](err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET)
}

// outcome is what became of a write by this attempt alone. The evidence comes
// before the policy, as bytes are proof and a verdict is an opinion.
func (a *attempt) outcome() Outcome {
	if !a.sent || a.StatusCode == 0 && a.Evidence.unsent() {
		return OutcomeNotSent
	}
	return a.verdict.outcome
}

// blank may stand before a page or an object, and changes nothing about it: space, and
// the byte order mark that some programs put before all that they write.
const blank = "\ufeff\t\n\f\r "

// isHTML recognises a page where data was due: a login, a block or an error
// page of something in between, whatever its status says.
func isHTML(h http.Header, body []byte) bool {
	mediaType, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(mediaType)) {
	case "text/html", "application/xhtml+xml":
		return true
	}
	body = bytes.TrimLeft(body, blank)
	// The first byte decides nearly always; sniffing each response costs time.
	return bytes.HasPrefix(body, []byte("<")) && strings.HasPrefix(http.DetectContentType(body), "text/html")
}

// isEncoded finds an encoding that net/http has not undone. The updater asks
// for none, because ranges and digests count encoded bytes.
func isEncoded(h http.Header) bool {
	encoding := h.Get("Content-Encoding")
	return encoding != "" && !strings.EqualFold(encoding, "identity")
}

// The documented error object, {"error":{code,message,details}}, is an error whatever its
// status says. It is looked for with care, as the content of a download is anybody's.

// isErrorObject tells whether a whole body is the documented error object and
// nothing else. Content may well have a member named error; a body that says
// nothing but what went wrong is none.
func isErrorObject(body []byte) bool {
	return len(body) <= maxErrorBody && mayBeErrorObject(body) && len(errorAmong(body)) == 1
}

// mayBeErrorObject judges a body by its beginning, which may be a part of the first
// member's name: so little is read of a stream before it is handed over.
func mayBeErrorObject(begin []byte) bool {
	const first = `"error"`
	if begin = bytes.TrimLeft(begin, blank); len(begin) > 0 && begin[0] != '{' {
		return strings.HasPrefix(blank, string(begin)) // of the mark's bytes, the first ones
	}
	begin = bytes.TrimLeft(bytes.TrimPrefix(begin, []byte("{")), blank)
	return bytes.HasPrefix(begin, []byte(first)) || bytes.HasPrefix([]byte(first), begin)
}

// errorAmong returns the members of an object if the documented error is one.
func errorAmong(body []byte) map[string]json.RawMessage {
	members := object(body)
	if inner := object(members["error"]); text(inner["code"])+text(inner["message"]) == "" {
		return nil
	}
	return members
}

// object returns the members of a JSON object, and nil for anything else.
func object(raw json.RawMessage) (members map[string]json.RawMessage) {
	if json.Unmarshal(bytes.TrimLeft(raw, blank), &members) != nil {
		return nil
	}
	return members
}

// text reads a string, and keeps a number or anything else as it was written.
func text(raw json.RawMessage) (s string) {
	if json.Unmarshal(raw, &s) != nil { // it does not refuse null
		return string(raw)
	}
	return s
}
