package bins

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
)

// Conditions to test for with [errors.Is]: the same values in packages bins, refunds and
// updater. An error can match several, such as ErrRateLimited and context.Canceled after a
// call that was canceled in a pause. For a refund, refunds.ActionOf says what to do.
var (
	// ErrInvalidArgument: refused before anything was sent. Correct the argument.
	ErrInvalidArgument = fault.ErrInvalidArgument
	// ErrLocalLimit: your limiter failed, or leaves no time before the deadline, and then
	// context.DeadlineExceeded matches too. This attempt sent nothing.
	ErrLocalLimit = fault.ErrLocalLimit
	// ErrCredential: the token source failed, or its token is unusable. After a 401,
	// ErrUnauthorized matches too.
	ErrCredential = fault.ErrCredential
	// ErrNoResponse: no connection could be made, or it broke before a response. Try later;
	// if it persists, check the base URL, the network and the certificates.
	ErrNoResponse = fault.ErrNoResponse
	// ErrTimeout: an attempt took longer than WithAttemptTimeout, or status 408. The end of the call's own
	// context is [context.DeadlineExceeded] or [context.Canceled].
	ErrTimeout = fault.ErrTimeout
	// ErrBadRequest: status 400, or another 4xx that IANA registers. Correct the request.
	ErrBadRequest = fault.ErrBadRequest
	// ErrUnauthorized: status 401. Replace the credential: it is wrong or expired.
	ErrUnauthorized = fault.ErrUnauthorized
	// ErrForbidden: status 403 or 407, or a proxy forbids the connection. Check what the
	// credential may do, or who may use the proxy.
	ErrForbidden = fault.ErrForbidden
	// ErrNotFound: status 404 or 410. Check the id and the base URL.
	ErrNotFound = fault.ErrNotFound
	// ErrTooLarge: status 413, 414 or 431. Send less.
	ErrTooLarge = fault.ErrTooLarge
	// ErrRateLimited: status 429, or the service asked to wait beyond the deadline. Wait for
	// Error.RetryAfter, and send less often.
	ErrRateLimited = fault.ErrRateLimited
	// ErrServer: a 5xx status. Try later, unless it is 501 or 505.
	ErrServer = fault.ErrServer
	// ErrBadResponse: an HTML page, a redirect that is not followed, a status that IANA does not
	// register, such as 499, or a body that is cut off, not as documented, or, for a lookup, larger
	// than 8 MiB. Check the base URL and proxies.
	ErrBadResponse = fault.ErrBadResponse
)

// An Error says why a call failed. Its text and fields are safe to log. Of what the service wrote,
// they hold at most an error code and a request id, and neither if it looks unsafe or repeats a
// credential or an id of yours. The methods return what the service wrote: do not log that. For an
// Error that you made, they return zero values.
type Error struct {
	Operation  string        // what failed, such as "lookup", "submit" or "download"
	StatusCode int           // status of the last response; 0 if there was none
	Code       string        // service's error code; "" if there is none that is safe to log
	RequestID  string        // request id of the last response, for the service's support; "" likewise
	RetryAfter time.Duration // wait before another try, such as the service asked for; 0 if none
	Attempts   int           // requests handed to the network; 0 if the call ended before
	Err        error         // conditions and causes, for errors.Is and errors.As
}

// Message returns the service's error message; "" if there is none in a known shape. Only
// downloads document one.
func (e *Error) Message() string { return e.failure().Response().Message }

// Body returns the body of the last response, up to 64 KiB; nil if there was none. Do not
// change it.
func (e *Error) Body() []byte { return e.failure().Response().Body }

// Header returns the header of the last response, such as quotas, Deprecation or Location;
// nil if there was none. Do not change it.
func (e *Error) Header() http.Header { return e.failure().Response().Header }

// Cause returns the original error of the network, the file system or your own code; nil if
// there was none. Its text may hold addresses and ids.
func (e *Error) Cause() error { return e.failure().Cause() }

// Condition returns a stable name of what went wrong, for metrics:
//
//	invalid_argument unauthorized forbidden not_found conflict too_large rate_limited
//	server_error redirect bad_response bad_request timeout no_response
//	local_limit no_credential canceled deadline_exceeded
//
// It can also be missing or closed (bins), suspended (bins, refunds), not_begun (refunds), or busy, changed, digest_mismatch,
// not_ready, not_resumable, not_synced, refused, unverified (updater), or else "other". If
// several apply, a failure that the service reported comes first, but suspended before one that
// may pass.
func (e *Error) Condition() string { return e.failure().Condition() }

// Retryable reports whether the same call, unchanged, can succeed later: after a timeout,
// 429, most 5xx, a broken connection, a failed token source, a limit or pause, or the end of
// its context. It is false if something must change first, such as the argument, the
// credential, the base URL or a certificate. For refunds use refunds.ActionOf: there it is
// false after an unknown outcome, and for the error that ends SubmitAll.
func (e *Error) Retryable() bool { return e.failure().Retryable() }

func (e *Error) failure() *fault.Failure { return (*fault.Failure)(e) }

// Error returns the text.
func (e *Error) Error() string { return fault.Describe("bins", e.failure()) }

// Unwrap returns the conditions and causes.
func (e *Error) Unwrap() error { return fault.Unwrap(e.failure()) }

// Format prints the text, under any verb.
func (e Error) Format(state fmt.State, verb rune) { fault.Format(state, verb, e.Error()) }

// MarshalText returns the text, so that JSON logs hold no more than it.
func (e Error) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }

// isOutage reports whether the service, or what leads to it, is to blame for a failure.
func isOutage(err error) bool {
	failed, ok := errors.AsType[*Error](err)
	return ok && failed.failure().Scope() == fault.OfOutage
}
