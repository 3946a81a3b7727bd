package updater

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/transport"
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

// Conditions of a download.
var (
	// ErrNotReady: a 202, a 204, or what [WithNotReady] names. Try again after Error.RetryAfter, if it is
	// set, or let [WithWait] do so.
	ErrNotReady = fault.ErrNotReady
	// ErrChanged: the content broke off, and its rest cannot be had or may belong to another version.
	// Discard what was read, and download again. DownloadFile has already done so.
	ErrChanged = fault.NewCondition("changed", "content changed", true)
)

// Conditions of [Client.DownloadFile] alone.
var (
	// ErrBusy: another download to the same path is under way, in this process or another.
	ErrBusy = fault.NewCondition("busy", "path is busy", true)
	// ErrUnverified: neither length nor chunks show that the content is whole.
	// [FileOptions.AcceptUnverified] accepts it.
	ErrUnverified = fault.NewCondition("unverified", "unverified end", false)
)

// errRefused is for metrics alone.
var errRefused = fault.NewCondition("refused", "content refused", false)

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

// Message returns the service's error message; "" if there is none in a known shape. Only downloads
// document one.
func (e *Error) Message() string { return e.failure().Response().Message }

// Body returns the body of the last response, up to 64 KiB; nil if there was none. Do not change it.
func (e *Error) Body() []byte { return e.failure().Response().Body }

// Header returns the header of the last response; nil if there was none. Do not change it.
func (e *Error) Header() http.Header { return e.failure().Response().Header }

// Cause returns the original error of the network, the file system or your own code; nil if there was
// none.
func (e *Error) Cause() error { return e.failure().Cause() }

// Condition returns a stable name of what went wrong, for metrics: see Errors in
// [github.com/carddata/carddata-go].
func (e *Error) Condition() string { return e.failure().Condition() }

// Retryable reports whether the same call can succeed later. It is false if something must change first,
// such as the argument or the credential.
func (e *Error) Retryable() bool { return e.failure().Retryable() }

func (e *Error) failure() *fault.Failure { return (*fault.Failure)(e) }

// Error returns the text.
func (e *Error) Error() string { return fault.Describe("updater", e.failure()) }

// Unwrap returns the conditions and causes.
func (e *Error) Unwrap() error { return fault.Unwrap(e.failure()) }

// Format prints the text, under any verb.
func (e Error) Format(state fmt.State, verb rune) { fault.Format(state, verb, e.Error()) }

// MarshalText returns the text.
func (e Error) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }

// A next is the step after an error of a download.
type next int

const (
	fail  next = iota // the call fails with the error
	goOn              // request the rest of this version, because the failed step may work again
	again             // request the whole content, because this version or its rest cannot be had
)

// classify decides what follows an error. Its callers bound how often: resumer.giveUp for
// goOn, and fileDownload for again.
func classify(err error) next {
	failed, isFailure := err.(*Error)
	if !isFailure {
		failed = &Error{Err: err} // a read error or a file system error
	}
	condition := failed.Condition()
	switch {
	case failed.RetryAfter > transport.MaxRetryAfter:
		return fail // the caller must see it
	case condition == "changed":
		return again
	case isFailure && condition == "bad_response": // a page or the wrong part, which another request would get again
		return fail
	case failed.StatusCode == 0 && (condition == "local_limit" || condition == "rate_limited"):
		return fail // there is no time for another request
	// Host name, credential and certificates were right when the content began, so they may be
	// right again.
	case failed.failure().Scope() == fault.OfOutage, condition == "no_response":
		return goOn
	}
	return fail
}

// refusesSpecial reports whether the service may have refused a request only because it
// continues an earlier call's part or asks for changes, and would serve a plain one. A plain
// request would also meet a refused credential, a throttle, an outage or a job that is not
// ready, so these must not cost the part.
func refusesSpecial(err error) bool {
	failed, isFailure := err.(*Error)
	return isFailure && failed.RetryAfter == 0 && failed.Condition() != "not_ready" &&
		!slices.Contains([]int{0, 401, 407, 408, 429, 502, 503, 504}, failed.StatusCode)
}
