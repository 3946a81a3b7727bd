package refunds

import (
	"fmt"
	"net/http"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/transport"
)

// Conditions to test for with [errors.Is]: an error can match several. For a refund, [ActionOf] says what to
// do.
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

// ErrNotBegun: the function of [WithBeforeSend] failed. Nothing was sent.
var ErrNotBegun = fault.ErrNotBegun

// An Error says what became of a refund that was not accepted, and why. Its text and fields are safe to
// log. What Message, Body, Header and Cause return is not.
//
// The error that ends SubmitAll matches no outcome.
type Error struct {
	Operation  string        // such as "lookup", "submit" or "download"
	StatusCode int           // of the last response; 0: there was none
	Code       string        // the service's error code; "": none is safe to log
	RequestID  string        // of the last response, for its support; "": none is safe to log
	RetryAfter time.Duration // wait before another try; 0: none is known
	Attempts   int           // requests handed to the network
	Outcome    Outcome       // never OutcomeAccepted
	Evidence   Evidence      // of the attempt that decided the outcome
	Err        error         // for errors.Is and errors.As
}

func newError(r *transport.Result) *Error {
	f := r.Failure
	return &Error{
		Operation: f.Operation, StatusCode: f.StatusCode, Code: f.Code, RequestID: f.RequestID, RetryAfter: f.RetryAfter, Attempts: f.Attempts,
		Outcome: Outcome(r.Outcome), Evidence: Evidence(r.Evidence), Err: f.Err,
	}
}

// failure is the error without its outcome; nil for no error.
func (e *Error) failure() *fault.Failure {
	if e == nil {
		return nil
	}
	return &fault.Failure{
		Operation: e.Operation, StatusCode: e.StatusCode, Code: e.Code, RequestID: e.RequestID, RetryAfter: e.RetryAfter, Attempts: e.Attempts, Err: e.Err,
	}
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

// Retryable reports whether the same call can succeed later without harm. It is false after an unknown
// outcome. Use [ActionOf].
func (e *Error) Retryable() bool {
	return e.Outcome != OutcomeUnknown && e.failure().Retryable()
}

// Error returns the text.
func (e *Error) Error() string {
	text := fault.Describe("refunds", e.failure())
	switch {
	case e.Operation == submitAll:
		return text
	case e.outcome() != ErrOutcomeUnknown:
		return text + ": the refund was " + e.Outcome.String()
	case e.StatusCode == http.StatusTooManyRequests:
		return text + ": the outcome is unknown, because no limiter has signed the 429: see WithRefusals"
	}
	return text + ": the outcome is unknown, the refund may have been recorded"
}

// Is reports whether target is the condition of the outcome.
func (e *Error) Is(target error) bool { return e.Operation != submitAll && target == e.outcome() }

func (e *Error) outcome() error {
	switch e.Outcome {
	case OutcomeNotSent:
		return ErrNotSent
	case OutcomeRejected:
		return ErrRejected
	}
	return ErrOutcomeUnknown
}

// Unwrap returns the conditions and causes, but no outcome of another submission that is a cause.
func (e *Error) Unwrap() error {
	return fault.Without(fault.Unwrap(e.failure()), func(target any) bool {
		return target == ErrNotSent || target == ErrRejected || target == ErrOutcomeUnknown
	})
}

// Format prints the text, under any verb.
func (e Error) Format(state fmt.State, verb rune) { fault.Format(state, verb, e.Error()) }

// MarshalText returns the text.
func (e Error) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }
