package faults

import (
	"context"
	"errors"
	"slices"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

// conditions are those that a failure of any operation can match.
var conditions = []error{
	bins.ErrInvalidArgument, bins.ErrLocalLimit, bins.ErrCredential, bins.ErrNoResponse, bins.ErrTimeout, bins.ErrBadRequest,
	bins.ErrUnauthorized, bins.ErrForbidden, bins.ErrNotFound, bins.ErrConflict, bins.ErrTooLarge, bins.ErrRateLimited,
	bins.ErrServer, bins.ErrRedirect, bins.ErrBadResponse, bins.ErrResponseTooLarge, context.Canceled, context.DeadlineExceeded,
	refunds.ErrSuspended, updater.ErrChanged, updater.ErrUnverified, updater.ErrNotResumable, updater.ErrNotReady,
}

func hasCondition(err error) bool {
	return slices.ContainsFunc(conditions, func(condition error) bool { return errors.Is(err, condition) })
}

// checkError finds a failure without the type of its package or without a condition.
func checkError[E error](c *call, err error) {
	if e, ok := errors.AsType[E](err); !ok || !hasCondition(e) && !c.isThrown(err) {
		c.w.violate(untyped, "%s: %T: %v", c, err, err)
	}
}

// attemptsOf is the number of attempts that an error reports, -1 if it reports none.
func attemptsOf(err error) int {
	if e, ok := errors.AsType[*bins.Error](err); ok {
		return e.Attempts
	}
	if e, ok := errors.AsType[*refunds.OutcomeError](err); ok {
		return e.Attempts
	}
	if e, ok := errors.AsType[*updater.Error](err); ok {
		return e.Attempts
	}
	return -1
}
