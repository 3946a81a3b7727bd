package refunds

import (
	"errors"
	"fmt"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
)

// An Outcome is what became of a refund: see the package comment.
type Outcome int

// What can become of a refund. The zero value is the careful one.
const (
	// OutcomeUnknown: the refund may have been recorded.
	OutcomeUnknown Outcome = Outcome(fault.OutcomeUnknown)
	// OutcomeNotSent: nothing was recorded, which is proven.
	OutcomeNotSent Outcome = Outcome(fault.OutcomeNotSent)
	// OutcomeRejected: the service refused this request. After a 409, an earlier one may have been
	// recorded.
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

// The outcomes of a failed submission, to test for with [errors.Is].
var (
	ErrNotSent        = errors.New("refund not sent")        // OutcomeNotSent
	ErrRejected       = errors.New("refund rejected")        // OutcomeRejected
	ErrOutcomeUnknown = errors.New("refund outcome unknown") // OutcomeUnknown
)

// Evidence is what the connection shows about an attempt. It helps the service's operator to find the
// request. Without httptrace events of the HTTP transport, only the times and the status are set.
type Evidence struct {
	Began           time.Time // handed to the network
	Ended           time.Time // response read, or attempt failed
	Traced          bool      // there were httptrace events
	Connected       bool      // a connection was made
	BytesWritten    int64     // to the connection; -1 if not counted
	RequestWritten  bool      // the whole request was handed to the connection
	ResponseStarted bool      // the first byte of a response arrived
	StatusCode      int       // 0: there was no response
}
