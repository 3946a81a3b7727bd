package main

import (
	"errors"

	"github.com/carddata/carddata-go/bins"
)

// failureOf is the problem of a row whose request has failed. Its kind is the
// condition's name.
func failureOf(err error) *problem {
	kind := "request"
	if e, ok := errors.AsType[*bins.Error](err); ok {
		kind = e.Condition()
	}
	return &problem{kind: kind, text: err.Error()}
}
