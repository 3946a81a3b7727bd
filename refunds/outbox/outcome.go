package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/carddata/carddata-go/refunds"
)

// A response is what is kept of what the service said to an attempt.
type response struct {
	status    int
	reason    string // for a person; nothing of the record
	message   string // in the service's words; never printed
	requestID string
}

// An outcome is what became of an attempt.
type outcome struct {
	event event
	response
	wait      time.Duration // that the service or the client asked for
	suspended bool          // the client did not send it, because the service failed for others
}

// judge turns what Submit returned into an outcome: what to do next is the library's word.
func judge(receipt *refunds.Receipt, err error) outcome {
	if err == nil {
		return outcome{event: eventAccepted, response: response{status: receipt.StatusCode, requestID: receipt.RequestID}}
	}
	result, condition := outcome{suspended: errors.Is(err, refunds.ErrSuspended)}, "other"
	if e, ok := errors.AsType[*refunds.Error](err); ok {
		condition, result.wait = e.Condition(), e.RetryAfter
		result.status, result.requestID, result.message = e.StatusCode, e.RequestID, storable(e.Message())
		if e.StatusCode != 0 {
			result.reason = fmt.Sprint(e.StatusCode, " ", cmp.Or(e.Code, http.StatusText(e.StatusCode)))
		}
	}
	result.reason = cmp.Or(result.reason, strings.ReplaceAll(condition, "_", " "))
	if result.suspended {
		result.wait = max(result.wait, time.Second)
	}
	switch refunds.ActionOf(err) {
	case refunds.ActionCorrect:
		result.event = eventRefused
	case refunds.ActionResubmit, refunds.ActionFixSetup:
		result.event = eventUnsent
	default:
		result.event = eventDoubted
		if errors.Is(err, refunds.ErrConflict) { // the service may have it, from another row or program
			result.event = eventConflict
		}
	}
	return result
}

// digits are what could be a card number.
var digits = regexp.MustCompile(`[0-9](?:[ -]?[0-9]){11,}`)

// storable makes what the service wrote fit for a column: no database takes more of
// it than text, and an outcome that cannot be written down is one that is lost. It
// keeps no digits that could be a card number.
func storable(text string) string {
	const most = 1000
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most])
	}
	return digits.ReplaceAllString(text, "…")
}
