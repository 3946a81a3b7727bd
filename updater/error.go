package updater

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// Conditions to test for with [errors.Is]. They are the same values in packages bins,
// refunds and updater. The service documents no status codes. An error can match several
// conditions, such as ErrRateLimited and context.Canceled when a call was canceled while
// it waited for a retry.
//
// For a refund, check the outcome first: do not submit a refund with an unknown outcome
// again, whatever the condition says.
var (
	// ErrInvalidArgument: refused before anything was sent. Correct the argument.
	ErrInvalidArgument = transport.ErrInvalidArgument
	// ErrLocalLimit: the client's own limiter failed, or a limit or a pause that the
	// service asked for left no time before the deadline. This attempt sent nothing.
	// During a pause, Error.RetryAfter is the time left, at most a minute, and the
	// error matches context.DeadlineExceeded as well: test for ErrLocalLimit first.
	ErrLocalLimit = transport.ErrLocalLimit
	// ErrCredential: the token source failed or returned an unusable token, before the
	// request or after a 401. After a 401 the error also matches ErrUnauthorized.
	ErrCredential = transport.ErrCredential
	// ErrNoResponse: no connection could be made, or it broke before a response. Try
	// later; if it persists, check the base URL, the network and the certificates.
	ErrNoResponse = transport.ErrNoResponse
	// ErrTimeout: an attempt took longer than WithAttemptTimeout, or status 408. Try
	// later, or allow more time. The end of the call's own context is
	// [context.DeadlineExceeded] or [context.Canceled].
	ErrTimeout = transport.ErrTimeout
	// ErrBadRequest: status 400, or another 4xx without a condition of its own. Correct
	// the request.
	ErrBadRequest = transport.ErrBadRequest
	// ErrUnauthorized: status 401. The credential is wrong or expired: replace it.
	ErrUnauthorized = transport.ErrUnauthorized
	// ErrForbidden: status 403 or 407, or a proxy that forbids the connection. Check what
	// the credential may do, or who may use the proxy.
	ErrForbidden = transport.ErrForbidden
	// ErrNotFound: status 404 or 410. Check the id and the base URL.
	ErrNotFound = transport.ErrNotFound
	// ErrConflict: status 409. For a refund, find out whether an earlier submission was
	// recorded.
	ErrConflict = transport.ErrConflict
	// ErrTooLarge: status 413, 414 or 431. Send less.
	ErrTooLarge = transport.ErrTooLarge
	// ErrRateLimited: status 429. Wait for Error.RetryAfter, and send less often.
	ErrRateLimited = transport.ErrRateLimited
	// ErrServer: a 5xx status. Try later, unless it is 501 or 505.
	ErrServer = transport.ErrServer
	// ErrRedirect: status 301, 302, 303, 307 or 308, not followed. Check the base URL.
	ErrRedirect = transport.ErrRedirect
	// ErrBadResponse: a response that is not one the service documents: an HTML page, a
	// body that is cut off or not as documented, or an unknown status. Check the base
	// URL and proxies.
	ErrBadResponse = transport.ErrBadResponse
	// ErrResponseTooLarge: the response exceeds WithMaxResponseBytes. Raise the limit if
	// you expect such a response.
	ErrResponseTooLarge = transport.ErrResponseTooLarge
)

// An Error says why a call failed. Its text names the operation, the status and the
// attempts.
//
// Text and fields hold at most the service's error code and request id, and only if
// they look harmless and repeat no credential or id of the caller (an id of less than
// six characters counts only as the whole). The methods return raw response data: do
// not log it. They return zero values for an Error that you made yourself.
type Error struct {
	Operation  string        // operation that failed, such as "lookup", "submit" or "download"
	StatusCode int           // status of the last response; 0 if there was none
	Code       string        // service's error code; "" if the body has no known shape, or the code may hold a card number or is not a plain word
	RequestID  string        // request id of the last response, for the service's support; "" if there is none, or it is not plain
	RetryAfter time.Duration // wait that the service asked for; 0 if none
	Attempts   int           // requests handed to the network; 0 if the call ended before
	Err        error         // conditions and causes, for errors.Is and errors.As
}

// Message returns the service's error message from the body of the last response; "" if
// there is none or the body has no known shape. Only downloads document one.
func (e *Error) Message() string { return e.failure().Response().Message }

// Details returns the error details from the body of the last response: the documented
// JSON object, or any other JSON that the service sent. It returns nil if there are
// none or the body has no known shape. Do not change it.
func (e *Error) Details() json.RawMessage { return e.failure().Response().Details }

// Body returns the body of the last response, up to 64 KiB; nil if there was none. Do not
// change it.
func (e *Error) Body() []byte { return e.failure().Response().Body }

// Header returns the header of the last response, for example to read quotas,
// Deprecation or Location; nil if there was none. Do not change it.
func (e *Error) Header() http.Header { return e.failure().Response().Header }

// Cause returns the original error of the network, the file system, or your own code,
// such as your HTTP transport, token source, limiter or FileOptions.Check; nil if there
// was none. Its text may hold addresses and ids, so the text of Error does not include
// it.
func (e *Error) Cause() error { return e.failure().Cause() }

// Condition returns a stable name of what went wrong, for metrics. It is one of
//
//	invalid_argument unauthorized forbidden not_found conflict too_large rate_limited
//	server_error redirect response_too_large bad_response bad_request timeout
//	no_response local_limit no_credential canceled deadline_exceeded
//
// which are the conditions above and the context's; or missing (bins), suspended
// (bins, refunds), busy, changed, digest_mismatch, not_ready, not_resumable, refused,
// unverified (updater); or else "other". If several apply, a failure that the service
// reported comes before one on this side. After a 401 it is no_credential if the source
// was asked for another token and failed, else unauthorized.
func (e *Error) Condition() string { return e.failure().Condition() }

// Retryable reports whether the same call, unchanged, can succeed later: after a
// timeout, 429, most 5xx, a broken connection, a failed token source, a limit or pause
// on this side, or the end of its context. It is false if something must change first,
// such as the argument, a refused credential, the base URL or a certificate. For a
// refund it is also false if the outcome is unknown, and for the error that ends
// refunds.SubmitAll, because the same call would submit the records before it again.
func (e *Error) Retryable() bool { return e.failure().Retryable() }

func (e *Error) failure() *transport.Failure { return (*transport.Failure)(e) }

// Error returns the text.
func (e *Error) Error() string { return transport.Describe("updater", e.failure()) }

// Unwrap returns the conditions and causes.
func (e *Error) Unwrap() error { return transport.Unwrap(e.failure()) }

// Format prints the text, whatever the verb.
func (e Error) Format(state fmt.State, verb rune) { transport.Format(state, verb, e.Error()) }

// MarshalText returns the text, so that JSON logs hold no more than it.
func (e Error) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }
