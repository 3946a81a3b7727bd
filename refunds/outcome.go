package refunds

import (
	"errors"
	"fmt"
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
	// 409, an earlier submission may have been recorded. The package comment
	// says when this can be wrong.
	OutcomeRejected Outcome = Outcome(fault.OutcomeRejected)
	// OutcomeAccepted: the service accepted the refund.
	OutcomeAccepted Outcome = Outcome(fault.OutcomeAccepted)
)

// String returns "unknown", "not sent", "rejected" or "accepted".
func (o Outcome) String() string { return fault.Outcome(o).String() }

// MarshalText returns the text, which is what JSON has.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (o *Outcome) UnmarshalText(text []byte) error {
	return unmarshal(o, text, OutcomeUnknown, OutcomeNotSent, OutcomeRejected, OutcomeAccepted)
}

// unmarshal sets the value that has the text.
func unmarshal[T fmt.Stringer](to *T, text []byte, values ...T) error {
	for _, v := range values {
		if v.String() == string(text) {
			*to = v
			return nil
		}
	}
	return fmt.Errorf("refunds: unmarshal: the text is no %T", *to)
}

// The outcomes of a failed submission, to test for with [errors.Is]. Every error of
// [Client.Submit] matches exactly one of them. [ActionOf] says what to do.
var (
	// ErrNotSent: nothing was recorded.
	ErrNotSent = errors.New("refund not sent")
	// ErrRejected: the service refused this request, and did not record it. After a
	// 409, an earlier submission may have been recorded.
	ErrRejected = errors.New("refund rejected")
	// ErrOutcomeUnknown: the refund may have been recorded.
	ErrOutcomeUnknown = errors.New("refund outcome unknown")
)

// Evidence is what the connection shows about an attempt. It helps the service's operator to find the
// request. If the transport of [WithHTTPClient] reports no httptrace events, only the times and the
// status are set.
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
