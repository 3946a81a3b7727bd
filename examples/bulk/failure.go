package main

import (
	"errors"

	"github.com/carddata/carddata-go/bins"
)

// A failure is a problem with a request, and not with the rows that it was for.
type failure struct {
	problem
	unanswered bool // by the service, which may answer the same another time
}

// kinds name the conditions of failed requests in reports, the first that holds.
var kinds = []struct {
	condition  error
	name       string
	unanswered bool
}{
	{bins.ErrMissing, "missing", false},
	{bins.ErrLocalLimit, "local_limit", true},
	{bins.ErrRateLimited, "rate_limited", true},
	{bins.ErrTimeout, "timeout", true},
	{bins.ErrServer, "server", true},
	// Something that stands between may have answered.
	{bins.ErrBadResponse, "bad_response", true},
	{bins.ErrResponseTooLarge, "response_too_large", false},
	{bins.ErrTooLarge, "request_too_large", false},
	{bins.ErrConflict, "conflict", false},
	{bins.ErrBadRequest, "bad_request", false},
	{bins.ErrNoAnswer, "no_answer", true},
}

func failureOf(err error) *failure {
	for _, kind := range kinds {
		if errors.Is(err, kind.condition) {
			return &failure{problem{kind.name, err.Error()}, kind.unanswered}
		}
	}
	return &failure{problem{"request", err.Error()}, false}
}
