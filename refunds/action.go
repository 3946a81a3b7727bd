package refunds

import (
	"errors"

	"github.com/carddata/carddata-go/internal/fault"
)

// An Action is what to do after a submission: see [ActionOf] and [Submission.Action].
type Action int

// What to do after a submission, and the failures that lead to it.
const (
	// ActionFindOut, the zero value: the refund may have been recorded. Wait a minute, because the request
	// may still be on its way. Then ask the operator to look up the RefundID, before you submit it again.
	// It follows an unknown outcome, a 409, and an error that no submission returned.
	ActionFindOut Action = iota
	// ActionDone: the service accepted the refund. Keep the receipt's RequestID.
	ActionDone
	// ActionResubmit: this call recorded nothing. Submit the same record later: after Error.RetryAfter, or,
	// if that is 0, after a second, and then less and less often. It follows a signed 429, a status of
	// WithRefusals that may pass, such as 503, a failed connection, limiter or token source, ErrSuspended,
	// and a context that ended before the refund was sent. It also follows ErrNotBegun: then another call may
	// be sending this refund.
	ActionResubmit
	// ActionCorrect: nothing was recorded, and the record, the option or another argument must change. It
	// follows any other ErrInvalidArgument, and any other 4xx that rejects.
	ActionCorrect
	// ActionFixSetup: nothing was recorded, and others will fail alike. Raise an alarm, correct the setup,
	// and submit the same record again. It follows a refused credential (401, an unusable token), account
	// (403, 404, 410), base URL (501, 505, a 307 or 308 to the same path, unknown host), certificate or
	// proxy (407), and a wrapper that drops the request's context (ErrInvalidArgument).
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

// ActionOf returns what to do after [Client.Submit] returned err, which may be wrapped or nil.
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

// Action returns what to do about the record.
func (s *Submission) Action() Action {
	if s.Err == nil && s.Outcome != OutcomeAccepted {
		return ActionFindOut // a Submission that nobody filled in
	}
	return ActionOf(s.Err)
}
