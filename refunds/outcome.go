package refunds

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
)

// An Outcome is what became of a refund. The package comment says how it is decided. The
// zero value is the careful one.
type Outcome int

// What can become of a refund.
const (
	// OutcomeUnknown: the refund may have been recorded.
	OutcomeUnknown Outcome = Outcome(fault.OutcomeUnknown)
	// OutcomeNotSent: it is proven that nothing was recorded.
	OutcomeNotSent Outcome = Outcome(fault.OutcomeNotSent)
	// OutcomeRejected: the service refused this request, and did not record it. After a
	// 409 ([ErrConflict]), an earlier submission may have been recorded. The package comment
	// says when this can be wrong.
	OutcomeRejected Outcome = Outcome(fault.OutcomeRejected)
	// OutcomeAccepted: the service accepted the refund.
	OutcomeAccepted Outcome = Outcome(fault.OutcomeAccepted)
)

// String returns "unknown", "not sent", "rejected" or "accepted".
func (o Outcome) String() string { return fault.Outcome(o).String() }

// The outcomes of a failed submission, to test for with [errors.Is]. Every error of
// [Client.Submit] matches exactly one of them. [ActionOf] says what to do.
var (
	// ErrNotSent: nothing was recorded.
	ErrNotSent = errors.New("refund not sent")
	// ErrRejected: the service refused this request, and did not record it. After a 409
	// (ErrConflict), an earlier submission may have been recorded.
	ErrRejected = errors.New("refund rejected")
	// ErrOutcomeUnknown: the refund may have been recorded.
	ErrOutcomeUnknown = errors.New("refund outcome unknown")
)

// An OutcomeError is the error of every submission that was not accepted. Its text holds
// no id, so it can be logged.
type OutcomeError struct {
	Outcome  Outcome  // what became of the refund; never OutcomeAccepted
	RefundID string   // Refund.RefundID, unchanged
	Attempts int      // requests handed to the network; 0 if the call ended before
	Evidence Evidence // what is known about the attempt that decided the outcome
	Err      error    // an *Error with the status and the conditions
}

// Error returns the text.
func (e *OutcomeError) Error() string {
	text := "refunds: submit"
	if e.Err != nil {
		text = e.Err.Error()
	}
	switch failed, _ := e.Err.(*Error); {
	case e.Outcome == OutcomeUnknown && failed != nil && failed.StatusCode == http.StatusTooManyRequests:
		return text + ": the outcome is unknown, because no limiter has signed the 429: see WithRefusals"
	case e.Outcome == OutcomeUnknown:
		return text + ": the outcome is unknown, the refund may have been recorded"
	}
	return text + ": the refund was " + e.Outcome.String()
}

// Unwrap returns the [*Error].
func (e *OutcomeError) Unwrap() error { return e.Err }

// Is reports whether target is the condition of the outcome: [ErrNotSent], [ErrRejected]
// or [ErrOutcomeUnknown].
func (e *OutcomeError) Is(target error) bool {
	switch e.Outcome {
	case OutcomeNotSent:
		return target == ErrNotSent
	case OutcomeRejected:
		return target == ErrRejected
	}
	return target == ErrOutcomeUnknown
}

// Format prints the text, under any verb.
func (e OutcomeError) Format(state fmt.State, verb rune) { fault.Format(state, verb, e.Error()) }

// MarshalText returns the text, so that JSON logs hold no more than it.
func (e OutcomeError) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }

// Evidence is what the connection shows about an attempt. It helps the service's operator to
// find the request. If the transport of [WithHTTPClient] reports no httptrace events, only
// the times and the status are set.
type Evidence struct {
	Began           time.Time // when the attempt was handed to the network
	Ended           time.Time // when the response had been read, or the attempt failed
	Traced          bool      // the HTTP transport reported httptrace events
	Connected       bool      // a connection was made
	BytesWritten    int64     // bytes written to the connection; -1 if not counted
	RequestWritten  bool      // the whole request was handed to the connection
	ResponseStarted bool      // the first byte of a response arrived
	StatusCode      int       // status of the response; 0 if there was none
}
