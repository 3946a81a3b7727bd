package fault

import (
	"context"
	"errors"
)

// Ended is the error of a call that ended because its context ended during a wait between
// attempts or before the first one.
func Ended(ctx context.Context) error { return EndedBy(ctx, nil) }

// EndedBy says that a context ended the call, and keeps the error of the last attempt.
func EndedBy(ctx context.Context, last error) error {
	ended, msg := ctx.Err(), "the deadline passed"
	if errors.Is(ended, context.Canceled) {
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
	return NewError(msg, ended, last, Foreign(context.Cause(ctx)))
}

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
