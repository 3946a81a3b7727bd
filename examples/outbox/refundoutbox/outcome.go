package refundoutbox

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
	event Event
	response
	wait    time.Duration // that the service asked for
	trouble string        // the condition, if it concerns all refunds and not this one
}

// judge turns what Submit returned into an outcome. It takes the library's word,
// and reads no error texts.
func judge(receipt *refunds.Receipt, err error) outcome {
	if err == nil {
		return outcome{event: eventAccepted, response: response{status: receipt.StatusCode, requestID: storable(receipt.RequestID)}}
	}
	o := outcome{event: eventUnsent, trouble: "other"}
	if e, ok := errors.AsType[*refunds.Error](err); ok {
		o.trouble, o.wait = e.Condition(), e.RetryAfter
		o.status, o.requestID, o.message = e.StatusCode, e.RequestID, storable(e.Message())
		if e.StatusCode != 0 {
			o.reason = fmt.Sprint(e.StatusCode, " ", cmp.Or(e.Code, http.StatusText(e.StatusCode)))
		}
	}
	if o.reason == "" {
		o.reason = strings.ReplaceAll(o.trouble, "_", " ")
	}
	switch {
	case o.trouble == "invalid_argument": // the library refuses the record, and always will
		o.event, o.trouble = eventRefused, ""
	case errors.Is(err, refunds.ErrNotSent):
	case !errors.Is(err, refunds.ErrRejected):
		o.event = eventDoubted
	case !ofTheService[o.trouble]:
		o.event, o.trouble = eventRefused, ""
	}
	return o
}

// ofTheService are the conditions of refusals behind which all other refunds would
// be refused too: about the credential, the rights, the address or the load.
var ofTheService = map[string]bool{
	"unauthorized": true, "forbidden": true, "not_found": true, "redirect": true, "server_error": true, "rate_limited": true,
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
