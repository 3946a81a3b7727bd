package refunds

import (
	"errors"

	"github.com/carddata/carddata-go/internal/fault"
)

// An Action is what to do after a submission: [ActionFindOut] (the zero value), [ActionDone],
// [ActionResubmit], [ActionCorrect] or [ActionFixSetup]. The comment of each constant lists the
// failures that lead to it. [ActionOf] and [Submission.Action] return the action.
type Action int

// What to do after a submission.
const (
	// ActionFindOut: the refund may have been recorded. Ask the service's operator to look
	// it up by its RefundID before you submit it again. Wait a minute before you ask: until
	// then the request may still be on its way. This follows an unknown outcome, a 409, and
	// every error that did not come from a submission.
	ActionFindOut Action = iota
	// ActionDone: the service accepted the refund. Keep the receipt's RequestID.
	ActionDone
	// ActionResubmit: the call did not record the refund. Submit the same record again
	// later, after Error.RetryAfter if it is set. This follows a 429 that a limiter signs, a failed
	// connection, limiter or token source, ErrSuspended, and the end of the context before the
	// refund was sent, or too little time left for a response. It also follows an error of
	// WithBeforeSend: test for that first, because another call may be sending this refund. If
	// ErrCredential persists, raise an alarm: a token source can be set up wrongly.
	ActionResubmit
	// ActionCorrect: the refund was not recorded, and will not be as it is. Correct the
	// record, the option or another argument. This follows any other ErrInvalidArgument, and a
	// rejection with any other 4xx.
	ActionCorrect
	// ActionFixSetup: the refund was not recorded, and others will fail like it. Raise an alarm.
	// Correct the credential (401, an unusable token), the account (403, 404, 410), the base
	// URL (501, 505, a 307 or 308 to the same path, unknown host), the certificate, the proxy
	// (407), or a wrapper that drops the request's context (ErrInvalidArgument). Then submit the
	// same record again. With several accounts, a 403, 404 or 410 is about its own alone. The
	// Example of BulkOptions (ReadAhead) says when a worker stops.
	ActionFixSetup
)

// String returns "find out", "done", "resubmit", "correct" or "fix setup".
func (a Action) String() string {
	switch a {
	case ActionDone:
		return "done"
	case ActionResubmit:
		return "resubmit"
	case ActionCorrect:
		return "correct"
	case ActionFixSetup:
		return "fix setup"
	}
	return "find out"
}

// MarshalText returns the text, which is what JSON has.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (a *Action) UnmarshalText(text []byte) error {
	return unmarshal(a, text, ActionFindOut, ActionDone, ActionResubmit, ActionCorrect, ActionFixSetup)
}

// ActionOf returns what to do after [Client.Submit] returned err, which may be wrapped. For
// nil it is [ActionDone].
func ActionOf(err error) Action {
	if err == nil {
		return ActionDone
	}
	failed, known := errors.AsType[*Error](err)
	if !known || failed.outcome() == ErrOutcomeUnknown || errors.Is(err, ErrOutcomeUnknown) {
		return ActionFindOut
	}
	// The policy has decided who would meet this failure, and whether it may pass.
	f := failed.failure()
	switch scope := f.Scope(); {
	case f.Retryable():
		return ActionResubmit
	case scope == fault.OfSetup, scope == fault.OfAccount:
		return ActionFixSetup
	case f.Condition() == fault.ConditionOf(fault.ErrConflict):
		return ActionFindOut
	case failed.Outcome == OutcomeRejected, errors.Is(failed, ErrInvalidArgument):
		return ActionCorrect
	}
	return ActionFindOut
}

// Action returns what to do about the record: [ActionOf] its error.
func (s *Submission) Action() Action {
	if s.Err == nil && s.Outcome != OutcomeAccepted {
		return ActionFindOut // a Submission that nobody filled in
	}
	return ActionOf(s.Err)
}
