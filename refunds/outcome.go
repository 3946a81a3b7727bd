package refunds

import (
	"errors"
	"fmt"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// An Outcome is what became of a refund. The zero value is the one to be careful
// with.
type Outcome int

const (
	// OutcomeUnknown: the refund may have been recorded, or not. Find out before
	// submitting it again.
	OutcomeUnknown = Outcome(transport.OutcomeUnknown)
	// OutcomeNotSent: it is proven that nothing was recorded. Submit it again.
	OutcomeNotSent = Outcome(transport.OutcomeNotSent)
	// OutcomeRejected: the service refused it, and recorded nothing. Whether the
	// record, the credential or the base URL is to be corrected, or a while to be
	// waited, is for the error's other conditions to say.
	OutcomeRejected = Outcome(transport.OutcomeRejected)
	// OutcomeAccepted: the service accepted it. No error has this outcome.
	OutcomeAccepted = Outcome(transport.OutcomeAccepted)
)

// String returns "unknown", "not sent", "rejected" or "accepted".
func (o Outcome) String() string { return transport.Outcome(o).String() }

// The outcomes of a failed submission, to test for with [errors.Is]. Exactly one
// of them matches any error of [Client.Submit].
var (
	// ErrNotSent: nothing was recorded. Submitting it again is safe.
	ErrNotSent = errors.New("refund not sent")
	// ErrRejected: the service refused the refund. A 409, which is
	// ErrConflict too, may mean that an earlier submission was recorded: find out by
	// RefundID before anything else.
	ErrRejected = errors.New("refund rejected")
	// ErrOutcomeUnknown: the refund may have been recorded. Look it up by its
	// refund_id with the service's operator before submitting it again.
	ErrOutcomeUnknown = errors.New("refund outcome unknown")
)

// An OutcomeError is the error of every submission that was not accepted. Its
// text holds no id, so that it can be logged; RefundID says which refund it is.
type OutcomeError struct {
	Outcome  Outcome
	RefundID string   // of the record
	Attempts int      // requests handed to the network
	Evidence Evidence // of the attempt that decided
	Err      error    // an *Error
}

// Error returns the text.
func (e *OutcomeError) Error() string {
	text := "refunds: submit"
	if e.Err != nil {
		text = e.Err.Error()
	}
	if e.Outcome == OutcomeUnknown {
		return text + ": the outcome is unknown, the refund may have been recorded"
	}
	return text + ": the refund was " + e.Outcome.String()
}

// Unwrap returns the [*Error].
func (e *OutcomeError) Unwrap() error { return e.Err }

// Is matches the outcome's condition.
func (e *OutcomeError) Is(target error) bool {
	switch e.Outcome {
	case OutcomeNotSent:
		return target == ErrNotSent
	case OutcomeRejected:
		return target == ErrRejected
	}
	return target == ErrOutcomeUnknown
}

// Format prints the text, whatever the verb.
func (e OutcomeError) Format(state fmt.State, verb rune) { transport.Format(state, verb, e.Error()) }

// MarshalText returns the text, so that JSON logs hold no more than it.
func (e OutcomeError) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }

// Evidence is what is known of an attempt from the events of its connection; it
// helps to find the request in the records of the service's operator. With an
// http.Client of the caller's own that reports no events, all but the times and
// the status are unset, and a request without an answer counts as perhaps sent.
type Evidence struct {
	Began           time.Time // when the attempt was handed to the network
	Ended           time.Time // when it had its answer, or failed
	Traced          bool      // the HTTP transport reported its events at all
	Connected       bool      // a connection was there for the request
	BytesWritten    int64     // bytes written to it; -1: not counted
	RequestWritten  bool      // the whole request was handed over, perhaps not yet written
	ResponseStarted bool      // a first byte of an answer arrived
	StatusCode      int       // of the answer; 0: none
}
