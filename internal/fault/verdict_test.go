package fault

import (
	"errors"
	"io"
	"testing"
)

// A meaning is what a status decides.
type meaning struct {
	outcome   Outcome // of a write
	condition error
	scope     Scope // beyond OfRequest, it delays all requests after it
	retries   int   // of a read, at most
}

// Every status has its meaning on purpose. An Error that was made by hand has the same condition and scope as a
// real one.
func TestEveryStatus(t *testing.T) {
	meanings := map[int]meaning{}
	for _, row := range []struct {
		meaning
		codes []int
	}{
		{meaning{OutcomeUnknown, ErrRedirect, OfSetup, 0}, []int{301, 302, 303}},
		{meaning{OutcomeRejected, ErrRedirect, OfSetup, 0}, []int{307, 308}},
		{meaning{OutcomeRejected, ErrBadRequest, OfRequest, 0}, []int{400, 402, 405, 411, 412, 415, 417, 418, 422, 423, 426, 428, 451}},
		{meaning{OutcomeUnknown, ErrBadRequest, OfRequest, 0}, []int{406, 416, 424}},
		{meaning{OutcomeRejected, ErrTooLarge, OfRequest, 0}, []int{413, 414, 431}},
		{meaning{OutcomeRejected, ErrConflict, OfRequest, 0}, []int{409}},
		{meaning{OutcomeRejected, ErrUnauthorized, OfSetup, 1}, []int{401}},
		{meaning{OutcomeRejected, ErrForbidden, OfAccount, 0}, []int{403}},
		{meaning{OutcomeRejected, ErrForbidden, OfSetup, 0}, []int{407}},
		{meaning{OutcomeRejected, ErrNotFound, OfAccount, 0}, []int{404, 410}},
		{meaning{OutcomeUnknown, ErrTimeout, OfOutage, 2}, []int{408}},
		{meaning{OutcomeUnknown, ErrBadRequest, OfOutage, 1}, []int{421, 425}},
		{meaning{OutcomeUnknown, ErrRateLimited, OfOutage, unlimited}, []int{429}},
		{meaning{OutcomeRejected, ErrServer, OfSetup, 0}, []int{501, 505}},
		{meaning{OutcomeUnknown, ErrServer, OfOutage, unlimited}, []int{502, 503, 504}},
	} {
		for _, code := range row.codes {
			meanings[code] = row.meaning
		}
	}
	classes := map[int]meaning{
		2: {OutcomeAccepted, nil, OfRequest, 0},
		4: {OutcomeUnknown, ErrBadResponse, OfOutage, 2}, // no RFC registers it
		5: {OutcomeUnknown, ErrServer, OfOutage, 2},
	}
	for code := 100; code < 1000; code++ {
		want, own := meanings[code]
		if !own {
			want = classes[code/100]
		}
		if want == (meaning{}) {
			want = meaning{OutcomeUnknown, ErrBadResponse, OfOutage, 0}
		}
		v := JudgeResponse(Request{}, code, nil)
		if got := (meaning{v.Outcome, v.condition, v.scope, v.Retries}); got != want {
			t.Errorf("%d means %v, want %v", code, got, want)
		}
		byHand := &Failure{StatusCode: code}
		if err := Unwrap(byHand); !errors.Is(err, want.condition) || err != nil && byHand.Scope() != want.scope {
			t.Errorf("%d, made by hand, means %v and scope %v, want %v", code, err, byHand.Scope(), want)
		}
	}
	if err := Unwrap(&Failure{StatusCode: 404, Err: io.EOF}); err != io.EOF || Unwrap(&Failure{}) != nil {
		t.Error(err)
	}
}
