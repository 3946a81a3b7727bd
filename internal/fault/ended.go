package fault

import (
	"context"
	"errors"
)

// Ended is the error of a call that ended because its context ended during a wait between
// attempts or before the first one.
func Ended(ctx context.Context) error { return EndedBy(ctx, nil) }

// EndedBy says that a context ended the call, and keeps the error of the last attempt. The context
// is the caller's, unless the cause of its end is a Limit.
func EndedBy(ctx context.Context, last error) error {
	ended, msg := ctx.Err(), "the deadline passed"
	limit, own := context.Cause(ctx).(*Limit)
	switch {
	case own:
		ended, msg = limit.Reason, limit.Reason.Error()
	case errors.Is(ended, context.Canceled):
		msg = "canceled by the caller"
	}
	if text := SafeText(last); text != "" && (errors.Is(last, ErrCredential) || errors.Is(last, ErrPaused)) {
		msg += ": " + text // the reason why no attempt was made
	}
	// The attempt's own timeout cancels its context. It must not look like a cancellation by
	// the caller.
	if errors.Is(last, context.Canceled) && !errors.Is(ended, context.Canceled) {
		last = nil
	}
	if own {
		return NewError(msg, ended, last)
	}
	return NewError(msg, ended, last, Foreign(context.Cause(ctx)))
}

// A Limit is the cause of the end of a context that this library has ended: what the call has waited
// for failed for this Reason, and nobody has canceled anything. What is in flight goes on, until the
// end of Caller.
type Limit struct {
	Reason error
	Caller context.Context
}

func (*Limit) Error() string { return "a limit of the call" }

// Foreign wraps an error of the caller: the cause of the end of a context, or the error of a
// check. It may be the error of another call, as with errgroup. errors.Is finds it, but its
// condition, response and text do not count as this call's.
func Foreign(err error) error {
	return Without(err, func(target any) bool {
		switch target.(type) {
		case **condition, *attempted, **safeError:
			return true
		}
		return false
	})
}
