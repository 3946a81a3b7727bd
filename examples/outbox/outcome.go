package main

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/refunds"
)

// stubborn is after how many in a row a refusal that is not about the record, such
// as of the credential, counts as one of the record after all.
const stubborn = 10

// judge turns what Submit returned into a state. It takes the library's word, and
// reads no error texts.
//
// Refusals are how often in a row the refund was refused before, for a reason that
// is not its own.
func judge(receipt *refunds.Receipt, err error, refusals int) outcome {
	if err == nil {
		return outcome{state: accepted, status: receipt.StatusCode, requestID: storable(receipt.RequestID)}
	}
	o := outcome{state: pending, reason: kindOf(err), failed: true}
	if e, ok := errors.AsType[*refunds.Error](err); ok {
		o.status, o.requestID, o.wait = e.StatusCode, storable(e.RequestID), e.RetryAfter
		o.message = storable(e.Message)
		if e.StatusCode != 0 {
			o.reason = statusReason(e.StatusCode, e.Code)
		}
	}
	switch {
	case errors.Is(err, refunds.ErrInvalidArgument):
		o.state, o.failed = rejected, false // by the library, and it will be again
	case errors.Is(err, refunds.ErrNotSent):
	case !errors.Is(err, refunds.ErrRejected):
		o.state = unknown
	case errors.Is(err, refunds.ErrRateLimited):
	case aboutTheRecord(err):
		o.state, o.failed = rejected, false
	case refusals+1 >= stubborn:
		o.state = rejected
	default:
		o.refused = true
	}
	return o
}

// storable makes what the service wrote fit for a column: no database takes more
// of it than text, and an answer that cannot be written down is one that is lost.
func storable(text string) string {
	const most = 1000
	if cut := []rune(text); len(cut) > most {
		text = string(cut[:most])
	}
	return target.Line(text)
}

// aboutTheRecord tells a refusal of the record from one of the credential, the
// rights or the address, behind which all others would be refused too.
func aboutTheRecord(err error) bool {
	for _, condition := range []error{
		refunds.ErrUnauthorized, refunds.ErrForbidden, refunds.ErrNotFound, refunds.ErrRedirect, refunds.ErrServer,
	} {
		if errors.Is(err, condition) {
			return false
		}
	}
	return true
}

// kinds name the conditions of an error without an answer, the first that holds.
var kinds = []struct {
	condition error
	name      string
}{
	{refunds.ErrInvalidArgument, "invalid argument"},
	{refunds.ErrCredential, "no credential"},
	{refunds.ErrLocalLimit, "asked to wait"},
	{refunds.ErrTimeout, "timeout"},
	{refunds.ErrNoAnswer, "no answer"},
	{refunds.ErrBadResponse, "bad response"},
}

func kindOf(err error) string {
	for _, kind := range kinds {
		if errors.Is(err, kind.condition) {
			return kind.name
		}
	}
	return "interrupted"
}

var code = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)

// statusReason leaves out what the service wrote for humans, which may quote the
// record.
func statusReason(status int, serviceCode string) string {
	if code.MatchString(serviceCode) {
		return fmt.Sprintf("%d %s", status, serviceCode)
	}
	return fmt.Sprintf("%d %s", status, http.StatusText(status))
}
