package bins

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
)

// Conditions to test for with [errors.Is]: an error can match several. Errors in
// [github.com/carddata/carddata-go] says what to do.
var (
	ErrInvalidArgument = fault.ErrInvalidArgument // refused before anything was sent
	ErrLocalLimit      = fault.ErrLocalLimit      // your limiter failed, or leaves no time
	ErrCredential      = fault.ErrCredential      // the token source failed, or its token is unusable
	ErrNoResponse      = fault.ErrNoResponse      // no connection could be made, or it broke before a response
	ErrTimeout         = fault.ErrTimeout         // an attempt took longer than WithAttemptTimeout, or status 408
	ErrBadRequest      = fault.ErrBadRequest      // status 400, or another 4xx that IANA registers, such as 409
	ErrUnauthorized    = fault.ErrUnauthorized    // status 401
	ErrForbidden       = fault.ErrForbidden       // status 403 or 407, or a proxy forbids the connection
	ErrNotFound        = fault.ErrNotFound        // status 404 or 410
	ErrTooLarge        = fault.ErrTooLarge        // status 413, 414 or 431
	ErrRateLimited     = fault.ErrRateLimited     // status 429, or a pause beyond the deadline; see Error.RetryAfter
	ErrServer          = fault.ErrServer          // a 5xx status
	ErrBadResponse     = fault.ErrBadResponse     // an HTML page, a redirect, an unregistered status, or a body that is cut off or not as documented
)

// An Error says why a call failed. Its text and fields are safe to log. What Message, Body, Header and
// Cause return is not.
type Error struct {
	Operation  string        // such as "lookup", "submit" or "download"
	StatusCode int           // of the last response; 0: there was none
	Code       string        // the service's error code; "": none is safe to log
	RequestID  string        // of the last response, for its support; "": none is safe to log
	RetryAfter time.Duration // wait before another try; 0: none is known
	Attempts   int           // requests handed to the network
	Err        error         // for errors.Is and errors.As
}

// Message returns the service's error message; "" if there is none in a known shape.
func (e *Error) Message() string { return e.failure().Response().Message }

// Body returns the body of the last response, up to 64 KiB; nil if there was none. Do not change it.
func (e *Error) Body() []byte { return e.failure().Response().Body }

// Header returns the header of the last response; nil if there was none. Do not change it.
func (e *Error) Header() http.Header { return e.failure().Response().Header }

// Cause returns the original error of the network or your own code; nil if there was none.
func (e *Error) Cause() error { return e.failure().Cause() }

// Condition returns a stable name of what went wrong, for metrics: see Errors in
// [github.com/carddata/carddata-go].
func (e *Error) Condition() string { return e.failure().Condition() }

// Retryable reports whether the same call can succeed later. It is false if something must change first,
// such as the argument or the credential.
func (e *Error) Retryable() bool { return e.failure().Retryable() }

func (e *Error) failure() *fault.Failure { return (*fault.Failure)(e) }

// Error returns the text.
func (e *Error) Error() string { return fault.Describe("bins", e.failure()) }

// Unwrap returns the conditions and causes.
func (e *Error) Unwrap() error { return fault.Unwrap(e.failure()) }

// Format prints the text, under any verb.
func (e Error) Format(state fmt.State, verb rune) { fault.Format(state, verb, e.Error()) }

// MarshalText returns the text.
func (e Error) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }

// isOutage reports whether the service, or what leads to it, is to blame for a failure.
func isOutage(err error) bool {
	failed, ok := errors.AsType[*Error](err)
	return ok && failed.failure().Scope() == fault.OfOutage
}
