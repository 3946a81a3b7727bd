package fault

import (
	"cmp"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strings"
)

// Outcome is the fate of a write. It is exposed as refunds.Outcome.
type Outcome int

// The zero value is the careful one, so a forgotten assignment is safe.
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

// A Verdict is how one attempt ended, and what follows from that. The verdicts below are all
// there are.
type Verdict struct {
	// Retries is how often one call retries after this verdict. invocation.mayRetry decides
	// whether a write may be retried at all.
	Retries int
	// Outcome is the outcome of a write that got this response. Without a response, the
	// evidence can turn Unknown into NotSent: see attempt.outcome.
	Outcome   Outcome
	condition error  // for errors.Is
	scope     Scope  // the requests that would fail alike
	Text      string // for the error's text and the log
}

// A Scope says which requests would fail alike if they were sent now.
type Scope uint8

const (
	// OfRequest: only this one. The failure is about its contents or its caller.
	OfRequest Scope = iota
	// OfAccount: the requests of the same account or credential, until somebody corrects it.
	OfAccount
	// OfOutage: perhaps every request, for now. Waiting may help.
	OfOutage
	// OfSetup: every request, until somebody changes the credential, the address, a
	// certificate or a proxy. Waiting does not help.
	OfSetup
)

// unlimited retries are bounded only by the settings, the retry budget and the deadline.
const unlimited = math.MaxInt

// WillPass reports whether another attempt helps as soon as there is less to do, so that nothing
// but the settings limits the retries.
func (v *Verdict) WillPass() bool { return v.Retries == unlimited }

// IsLimit reports whether a limiter may have refused the request: an early retry is refused again.
func (v *Verdict) IsLimit() bool { return v == RateLimited || v == signedLimit }

// The verdicts are the retry policy. Only they decide what an attempt meant. Wait for the end
// of an outage (unlimited). A 500 may be a bug that this request triggers (2). A status that
// blames the request will come again (0). A call that makes many requests reads the scope,
// and not the error, to decide whether to go on.
//
// Retry a write only on proof. A 408, 500, 502, 503 or 504 often comes from a proxy that gave
// up, and does not say whether the service has processed the request.
var (
	Success = &Verdict{0, OutcomeAccepted, nil, OfRequest, "success"}

	// Nothing was sent. The same limiter would refuse another attempt, and the caller may
	// make the call again. A call whose deadline comes before its turn says nothing of others.
	LimiterRefused = &Verdict{0, OutcomeNotSent, ErrLocalLimit, OfOutage, "the local rate limiter refused to send"}
	TurnTooLate    = &Verdict{0, OutcomeNotSent, ErrLocalLimit, OfRequest, "the local rate limiter refused to send"}
	Paused         = &Verdict{0, OutcomeNotSent, ErrRateLimited, OfRequest, "the service asked to wait"}
	NotBegun       = &Verdict{0, OutcomeNotSent, ErrNotBegun, OfRequest, "the function before sending failed"}
	// The door ended the call, and its error says why.
	HeldBack = &Verdict{0, OutcomeNotSent, nil, OfRequest, "held back"}
	// The source failed before the first attempt, or had no replacement for a refused token.
	// In both cases the service has not processed the request.
	CredentialFailed = &Verdict{0, OutcomeRejected, ErrCredential, OfOutage, "no credential"}
	// A source that fails may work later. A source that returns something unusable was set up
	// wrong.
	CredentialUnusable = &Verdict{0, OutcomeRejected, ErrCredential, OfSetup, "no credential"}
	CallerEnded        = &Verdict{0, OutcomeUnknown, nil, OfRequest, "the caller's context ended"}
	// The evidence says whether the write was sent before, in its own context.
	contextDropped = &Verdict{0, OutcomeUnknown, ErrInvalidArgument, OfSetup, "the wrapper dropped the request's context"}

	// The evidence, and not this column, says whether the write was sent: connectFailed is
	// Unknown here, and NotSent by its evidence.
	hostNotFound     = &Verdict{0, OutcomeUnknown, ErrNoResponse, OfSetup, "no response: the host name does not exist"}
	hostLookupFailed = &Verdict{unlimited, OutcomeUnknown, ErrNoResponse, OfOutage, "no response: the host name could not be looked up"}
	connectFailed    = &Verdict{unlimited, OutcomeUnknown, ErrNoResponse, OfOutage, "no response: no connection was made"}
	handshakeFailed  = &Verdict{0, OutcomeUnknown, ErrNoResponse, OfSetup, "no response: the TLS handshake failed"}
	// A proxy may refuse for the moment, or by a rule that does not change.
	proxyRefused     = &Verdict{1, OutcomeUnknown, ErrNoResponse, OfOutage, "no response: the proxy could not connect"}
	proxyForbids     = &Verdict{0, OutcomeUnknown, ErrForbidden, OfSetup, "no response: the proxy forbids the connection or wants a login"}
	connectionBroken = &Verdict{unlimited, OutcomeUnknown, ErrNoResponse, OfOutage, "no response: the connection broke"}
	// Without events nothing is proven unsent.
	transportFailed = &Verdict{unlimited, OutcomeUnknown, ErrNoResponse, OfOutage, "no response: the HTTP transport failed, its own error is the Cause"}
	// Each attempt takes the full timeout, so only a few fit into a call.
	AttemptTimedOut = &Verdict{2, OutcomeUnknown, ErrTimeout, OfOutage, "no response within the attempt timeout"}
	garbledResponse = &Verdict{1, OutcomeUnknown, ErrBadResponse, OfOutage, "the response is not HTTP, or its header is too large"}

	// The service has refused the request, and would refuse it again.
	requestRefused = &Verdict{0, OutcomeRejected, ErrBadRequest, OfRequest, "refused"}
	// A 406 or 416 is about the response, and a 424 about another request. The service may have
	// processed this one before it found that out.
	foundOutLate    = &Verdict{0, OutcomeUnknown, ErrBadRequest, OfRequest, "failed"}
	requestTooLarge = &Verdict{0, OutcomeRejected, ErrTooLarge, OfRequest, "refused as too large"}
	// Retried only with another token, see invocation.refreshToken.
	Unauthorized = &Verdict{1, OutcomeRejected, ErrUnauthorized, OfSetup, "refused"}
	forbidden    = &Verdict{0, OutcomeRejected, ErrForbidden, OfAccount, "refused"}
	// A 407 comes from a proxy, so every account gets it.
	proxyLogin = &Verdict{0, OutcomeRejected, ErrForbidden, OfSetup, "refused"}
	notFound   = &Verdict{0, OutcomeRejected, ErrNotFound, OfAccount, "refused"}
	conflict   = &Verdict{0, OutcomeRejected, ErrConflict, OfRequest, "refused"}
	// A 408 may come from a proxy that had passed the request on.
	requestTimeout = &Verdict{2, OutcomeUnknown, ErrTimeout, OfOutage, "failed"}
	// A service that calls others can pass on their 421, 425 or 429 after it has processed the
	// request: the error handlers of some frameworks answer with the status of the error. A 429
	// that a limiter signs comes from before that. Each has its own row, because retries are
	// counted by row.
	Misdirected = &Verdict{1, OutcomeUnknown, ErrBadRequest, OfOutage, "failed"}
	TooEarly    = &Verdict{1, OutcomeUnknown, ErrBadRequest, OfOutage, "failed"}
	RateLimited = &Verdict{unlimited, OutcomeUnknown, ErrRateLimited, OfOutage, "rate limited"}
	signedLimit = &Verdict{unlimited, OutcomeRejected, ErrRateLimited, OfOutage, "refused"}
	// After a 502, 503 or 504, a read is retried as often as the call allows. A write is
	// retried only under Resubmit.
	serverFailed      = &Verdict{2, OutcomeUnknown, ErrServer, OfOutage, "failed"}
	ServerUnavailable = &Verdict{unlimited, OutcomeUnknown, ErrServer, OfOutage, "failed"}
	// A 501 or 505 is about the method or the protocol, so another attempt gets it again.
	notSupported = &Verdict{0, OutcomeRejected, ErrServer, OfSetup, "refused"}
	// Some services use a 303 to say that the request is done and the result is elsewhere, and some
	// frameworks a 307: see leadsElsewhere.
	redirectAsGet      = &Verdict{0, OutcomeUnknown, ErrRedirect, OfSetup, "a redirect, not followed"}
	redirectSameMethod = &Verdict{0, OutcomeRejected, ErrRedirect, OfSetup, "a redirect, not followed"}

	// From here on the response is unusable under any status.
	UnexpectedStatus = &Verdict{0, OutcomeUnknown, ErrBadResponse, OfOutage, "unexpected status"}
	// A 4xx that IANA does not register comes from a gateway, and does not say whether the service has
	// processed the request: a 499 of one means that it was canceled, perhaps afterwards.
	unregistered = &Verdict{2, OutcomeUnknown, ErrBadResponse, OfOutage, "unexpected status"}
	// A login or block page with status 200 comes from a proxy or gateway.
	HTMLResponse = &Verdict{0, OutcomeUnknown, ErrBadResponse, OfOutage, "the response is an HTML page"}
	// Writes only. The response began before the request was sent, so it is not about it.
	PrematureResponse = &Verdict{0, OutcomeUnknown, ErrBadResponse, OfOutage, "the response came before the request had been sent"}
	// A proxy or a service that answers errors with a 200.
	ErrorObject = &Verdict{0, OutcomeUnknown, ErrBadResponse, OfOutage, "the response is an error object, in spite of its status"}
	// A retry would get the same receipt, or record a second refund.
	ResponseRefused = &Verdict{0, OutcomeUnknown, ErrBadResponse, OfOutage, "the caller's check refused the response"}
	// Downloads only: a 202 or 204, or a failure that NotReady accepts. It is about one job.
	// The call does not retry, and Retry-After delays no other call.
	NotReady = &Verdict{0, OutcomeUnknown, ErrNotReady, OfRequest, "the result is not ready"}
	// From here on the status was a success, so a write is accepted by its status. The
	// settings refused the response, and would refuse it again.
	encodedResponse = &Verdict{0, OutcomeAccepted, ErrBadResponse, OfOutage, "the response has a content encoding that was not asked for"}
	oversized       = &Verdict{0, OutcomeAccepted, ErrBadResponse, OfRequest, ErrOversize.Error()}
	// A cut-off body is a broken connection. An unreadable body may be a broken proxy.
	TruncatedResponse = &Verdict{unlimited, OutcomeAccepted, ErrBadResponse, OfOutage, "the response was cut off"}
	MalformedResponse = &Verdict{1, OutcomeAccepted, ErrBadResponse, OfOutage, "the response is not the documented JSON"}
)

// ErrPassed is the error of a write whose deadline had passed before its first byte left.
var ErrPassed = NewError("the deadline passed", context.DeadlineExceeded)

// ErrContextDropped is the error of a request that comes through a wrapper without the context of
// its attempt.
var ErrContextDropped = NewError(contextDropped.Text, ErrInvalidArgument)

// ErrPaused is the error of a call that the service has asked to wait.
var ErrPaused = NewError(Paused.Text, ErrRateLimited)

// statusVerdict judges a response by its status alone. A status without its own line has the
// Verdict of its class (RFC 9110, 15). Only a refusal that is registered is one.
func statusVerdict(status int) *Verdict {
	return cmp.Or(statusVerdicts[status], classVerdicts[status/100], UnexpectedStatus)
}

var classVerdicts = map[int]*Verdict{2: Success, 4: unregistered, 5: serverFailed}

var statusVerdicts = map[int]*Verdict{
	301: redirectAsGet, 302: redirectAsGet, 303: redirectAsGet,
	307: redirectSameMethod, 308: redirectSameMethod,
	400: requestRefused, 402: requestRefused, 405: requestRefused, 411: requestRefused, 412: requestRefused,
	415: requestRefused, 417: requestRefused, 418: requestRefused, 422: requestRefused, 423: requestRefused,
	426: requestRefused, 428: requestRefused, 451: requestRefused,
	406: foundOutLate, 416: foundOutLate, 424: foundOutLate,
	401: Unauthorized,
	403: forbidden, 407: proxyLogin,
	404: notFound, 410: notFound,
	408: requestTimeout,
	409: conflict,
	413: requestTooLarge, 414: requestTooLarge, 431: requestTooLarge,
	421: Misdirected, 425: TooEarly,
	429: RateLimited,
	501: notSupported, 505: notSupported,
	502: ServerUnavailable, 503: ServerUnavailable, 504: ServerUnavailable,
}

// A Request is what a response has to answer.
type Request struct {
	Write       bool // the service must not process it twice
	Stream      bool // the body of a 200 is content, which is not read here
	Partial     bool // it asks for a range, so a 206 is its 200
	Conditional bool // it asks for changes, so a 304 is a success
	URL         *url.URL
}

// JudgeResponse judges a response before its body is read. It also checks the header of a
// stream, because the caller gets the content from the first byte on.
func JudgeResponse(r Request, status int, h http.Header) *Verdict {
	streamed := r.Stream && (status == http.StatusOK || r.Partial && status == http.StatusPartialContent)
	switch {
	case r.Conditional && status == http.StatusNotModified:
		return Success
	// An encoded body does not show what it contains.
	case streamed && isEncoded(h) && saysPage(h):
		return HTMLResponse
	case streamed && isEncoded(h):
		return encodedResponse
	case r.Stream && (status == http.StatusAccepted || status == http.StatusNoContent):
		return NotReady
	case r.Stream && !streamed && status/100 == 2:
		return UnexpectedStatus
	}
	verdict := statusVerdict(status)
	switch {
	case verdict == redirectSameMethod && leadsElsewhere(r.URL, h.Get("Location")):
		return redirectAsGet
	case verdict == RateLimited && isSigned(h):
		return signedLimit
	}
	return verdict
}

// leadsElsewhere reports whether a redirect leads to another path. One to another scheme or host, or
// to the same path with or without its last slash, comes from a router that has not processed the
// request. Another path may be that of the result: the redirect of some frameworks is a 307, whoever
// made it.
func leadsElsewhere(from *url.URL, location string) bool {
	if from == nil || location == "" {
		return false
	}
	to, err := from.Parse(location)
	return err != nil || strings.TrimSuffix(to.EscapedPath(), "/") != strings.TrimSuffix(from.EscapedPath(), "/")
}

// JudgeBody judges the body of a success, and the error of reading it. A write that was
// accepted by its status stays accepted if its receipt broke off. A receipt that speaks of an
// error, or may do so after the part that arrived, accepts nothing.
func JudgeBody(ctx context.Context, r Request, h http.Header, body []byte, err error) *Verdict {
	switch {
	case isPage(h, body, err):
		return HTMLResponse
	case r.Write && speaksOfError(h, body):
		return ErrorObject
	case err == nil && isEncoded(h):
		return encodedResponse
	case err == nil:
		return Success
	case err == ErrOversize:
		return oversized
	case r.Write:
		return TruncatedResponse
	// The body arrived whole but cannot be decompressed. Other errors mean that it broke off.
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), is[flate.CorruptInputError](err):
		return MalformedResponse
	case ctx.Err() != nil:
		return endedVerdict(ctx)
	}
	return TruncatedResponse
}

// isEncoded finds an encoding that net/http has not undone. The updater asks for no encoding,
// because ranges and digests count encoded bytes.
func isEncoded(h http.Header) bool {
	encoding := h.Get("Content-Encoding")
	return encoding != "" && !strings.EqualFold(encoding, "identity")
}
