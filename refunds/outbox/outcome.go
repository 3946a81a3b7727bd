package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/carddata/carddata-go/refunds"
)

// A response is what is kept of what the service said to an attempt.
type response struct {
	reason    string // for a person; nothing of the record
	requestID string

	// Of a receipt:
	status      int
	contentType string
	body        []byte
}

// bodyLimit is how much of a receipt's body is kept, in bytes.
const bodyLimit = 4 << 10

// An outcome is what became of an attempt.
type outcome struct {
	event event
	response
	wait      time.Duration // that the service or the client asked for
	suspended bool          // the client did not send it, because the service failed for others
	rests     bool          // it was not tried, because the service asked its account to wait
	final     bool          // another attempt would settle nothing
	setup     bool          // another attempt would fail, too, until somebody corrects the set-up
}

// judge turns what Submit returned into an outcome: refunds.ActionOf says what to do next.
func judge(receipt *refunds.Receipt, err error) outcome {
	if err == nil {
		return outcome{event: eventAccepted, response: response{
			requestID: receipt.RequestID, status: receipt.StatusCode,
			contentType: receipt.ContentType, body: receipt.Body[:min(len(receipt.Body), bodyLimit)],
		}}
	}
	result := outcome{suspended: errors.Is(err, refunds.ErrSuspended)}
	if e, ok := errors.AsType[*refunds.Error](err); ok {
		result.requestID, result.wait = e.RequestID, e.RetryAfter
		result.final = e.StatusCode == http.StatusConflict // the service may have it from another row or program
		result.reason = strings.ReplaceAll(e.Condition(), "_", " ")
		if e.StatusCode != 0 {
			result.reason = fmt.Sprint(e.StatusCode, " ", cmp.Or(e.Code, http.StatusText(e.StatusCode)))
		}
	}
	switch action := refunds.ActionOf(err); action {
	case refunds.ActionCorrect:
		result.event = eventRefused
	case refunds.ActionResubmit, refunds.ActionFixSetup:
		result.event, result.setup = eventUnsent, action == refunds.ActionFixSetup
	default:
		result.event = eventDoubted
	}
	return result
}
