package refunds

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// Conditions to test for with [errors.Is]; they are the same values in the
// sibling packages. An error can match several, such as ErrRateLimited and
// context.Canceled when a call was canceled while it waited to try again.
var (
	// ErrInvalidArgument: refused before anything was sent. Correct the argument.
	ErrInvalidArgument = transport.ErrInvalidArgument
	// ErrLocalLimit: the client's own limiter, or a pause that the service asked
	// for, left no time before the deadline. Nothing was sent by this attempt. In a
	// pause, Error.RetryAfter is what is left of it.
	ErrLocalLimit = transport.ErrLocalLimit
	// ErrCredential: the token source failed or returned an unusable token.
	ErrCredential = transport.ErrCredential
	// ErrNoAnswer: no connection could be made, or it broke before an answer.
	ErrNoAnswer = transport.ErrNoAnswer
	// ErrTimeout: an attempt took longer than WithAttemptTimeout, or status 408.
	ErrTimeout = transport.ErrTimeout
	// ErrBadRequest: status 400, or another 4xx without a condition of its own.
	ErrBadRequest = transport.ErrBadRequest
	// ErrUnauthorized: status 401. The credential is wrong or expired.
	ErrUnauthorized = transport.ErrUnauthorized
	// ErrForbidden: status 403 or 407.
	ErrForbidden = transport.ErrForbidden
	// ErrNotFound: status 404 or 410.
	ErrNotFound = transport.ErrNotFound
	// ErrConflict: status 409.
	ErrConflict = transport.ErrConflict
	// ErrTooLarge: status 413, 414 or 431. Send less.
	ErrTooLarge = transport.ErrTooLarge
	// ErrRateLimited: status 429. Wait for Error.RetryAfter, and send less often.
	ErrRateLimited = transport.ErrRateLimited
	// ErrServer: a 5xx status.
	ErrServer = transport.ErrServer
	// ErrRedirect: status 301, 302, 303, 307 or 308, not followed. Check the base URL.
	ErrRedirect = transport.ErrRedirect
	// ErrBadResponse: an answer that cannot be the service's: an HTML page, a body
	// cut off or not as documented, an unknown status.
	ErrBadResponse = transport.ErrBadResponse
	// ErrResponseTooLarge: the answer exceeds WithMaxResponseBytes.
	ErrResponseTooLarge = transport.ErrResponseTooLarge
)

// An Error is why a call failed. Its text names the operation, the status and the
// attempts. Of what the service wrote it quotes no more than a code and a request
// id of harmless form, and none that repeats a credential or an id of the caller's,
// whatever verb prints it. The fields do hold what the service wrote: take care
// where they go.
type Error struct {
	Operation  string          // what was called
	StatusCode int             // of the last answer; 0 if none came
	Code       string          // from the body, if it has a known shape
	Message    string          // from the body, if it has a known shape
	Details    json.RawMessage // from the body, if it has a known shape: an object, or anything else
	RequestID  string          // of the last answer, to quote to the service's support; "" if it gave none
	RetryAfter time.Duration   // the wait that the service asked for; 0 if none
	Attempts   int             // requests handed to the network; 0 if the call ended before
	Body       []byte          // of the last answer, at most 64 KiB of an error
	Err        error           // what errors.Is and errors.As look through
}

// Error returns the text.
func (e *Error) Error() string { return transport.Describe("refunds", (*transport.Failure)(e)) }

// Unwrap returns the conditions and causes.
func (e *Error) Unwrap() error { return transport.Unwrap((*transport.Failure)(e)) }

// Format prints the text, whatever the verb.
func (e Error) Format(state fmt.State, verb rune) { transport.Format(state, verb, e.Error()) }

// MarshalText returns the text, so that JSON logs hold no more than it.
func (e Error) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }
