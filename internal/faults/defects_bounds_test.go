package faults

import "github.com/carddata/carddata-go/internal/faults/edit"

// boundDefects break the bounds of calls, or repeat too much or too little.
var boundDefects = []defect{
	{
		"lookups", "a refusal is repeated", refusedRequest,
		[]edit.Edit{edit.Element(rowType, rowRetries, often)},
		[]invariant{tooOften},
	},
	{
		"lookups", "nothing is repeated", mayRetry,
		[]edit.Edit{edit.Force(false, "MaxRetries")},
		[]invariant{gaveUp},
	},
	{
		"", "Retry-After is ignored", readRetryAfter,
		[]edit.Edit{edit.Returns("0")},
		[]invariant{inPause, tooOften},
	},
	{
		"", "Retry-After binds one call only", shouldRetry,
		[]edit.Edit{edit.Drop("throttle.cooldown()")},
		[]invariant{inPause},
	},
	{
		"", "repetitions pass the limiter by", prepareAttempt,
		[]edit.Edit{edit.Rewrite("throttle.wait()", "func() error { if {recv}.attempts > 0 { return nil }; return {it} }()")},
		[]invariant{overLimit, inPause},
	},
	{
		"crowd", "the retry budget is not asked", shouldRetry,
		[]edit.Edit{edit.Force(true, "budget.take()")},
		[]invariant{overBudget},
	},
	{
		"", "a deadline does not reach the network", sendAttempt,
		[]edit.Edit{edit.Rewrite("context.WithCancelCause()", "func() (context.Context, context.CancelCauseFunc) { c, _ := {it}; return context.WithCancelCause(context.WithoutCancel(c)) }()")},
		[]invariant{overdue, leaked},
	},
	{
		"lookups", "a call without a deadline has no end", clientDo,
		[]edit.Edit{edit.Rewrite("context.WithTimeout()", "context.WithCancel({1})")},
		[]invariant{overdue, leaked},
	},
	{
		"", "a body is not closed", receiveBody,
		[]edit.Edit{edit.Everywhere(edit.Drop("Close()"))},
		[]invariant{leaked},
	},
	{
		"lookups", "a refused token is not replaced", refreshToken,
		[]edit.Edit{edit.Force(false, "=credential.token", "a.token")},
		[]invariant{gaveUp},
	},
	{
		"", "a failure has no condition", attemptReason,
		[]edit.Edit{edit.Rewrite(".condition", "error(nil)")},
		[]invariant{untyped},
	},
	{
		"", "a wait of hours is obeyed", shouldRetry,
		[]edit.Edit{edit.Force(false, "maxRetryAfter")},
		[]invariant{tooOften},
	},
	{
		"bulk", "a bulk lookup that is left goes on", runBulk,
		[]edit.Edit{edit.Drop("cancel()"), edit.Drop("tasks.Wait()")},
		[]invariant{leaked},
	},
	{
		"bulk", "a bulk lookup has no bound in flight", bulkMaySend,
		[]edit.Edit{edit.Rewrite("breaker.Limit()", "({it}+2)")},
		[]invariant{overLimit},
	},
	{
		"lookups", "a repetition reports the first attempt alone", callFailure,
		[]edit.Edit{edit.Element("Failure", "Attempts", "1")},
		[]invariant{miscounted},
	},
}

// liveness is the workload of the defects that TestLiveness finds.
const liveness = "liveness"

// livenessDefects let something outlive its reason.
var livenessDefects = []defect{
	{
		liveness, "a pause is never lifted", beginCooldown,
		[]edit.Edit{edit.Rewrite("Add()", "{it}.Add(24 * time.Hour)")},
		[]invariant{unended},
	},
	{
		liveness, "a circuit breaker never probes", probeDelay,
		[]edit.Edit{edit.Rewrite("time.Until()", "time.Hour")},
		[]invariant{unended},
	},
	{
		liveness, "the retry budget never refills", refillBudget,
		[]edit.Edit{edit.Returns("")},
		[]invariant{unended},
	},
	{
		liveness, "a loader keeps a dead request", removeRequest,
		[]edit.Edit{edit.Returns("")},
		[]invariant{unended},
	},
	{
		liveness, "nobody is told that a loader's request has ended", sendRequest,
		[]edit.Edit{edit.Drop("close()")},
		[]invariant{unended, overdue, leaked},
	},
}

// misbehaving is the workload of the defects that TestParts finds.
const misbehaving = "parts"

// partDefects let the caller's own parts do harm.
var partDefects = []defect{
	{
		misbehaving, "a token source is waited for on the call's goroutine", askToken,
		[]edit.Edit{edit.Returns("{recv}.question({1}, {2})")},
		[]invariant{overdue},
	},
	{
		misbehaving, "a cache is waited for", askCache,
		[]edit.Edit{edit.Rewrite("context.WithTimeout()", "context.WithCancel({1})")},
		[]invariant{overdue, gaveUp},
	},
	{
		misbehaving, "a download stays open when a logger throws", clientDo,
		[]edit.Edit{edit.Drop("Stream.Close()")},
		[]invariant{leaked},
	},
	{
		misbehaving, "a bulk submission swallows what a part throws", rethrowPanic,
		[]edit.Edit{edit.Returns("")},
		[]invariant{swallowed},
	},
	{
		misbehaving, "a refund that was sent counts as not sent when a part throws", failRecord,
		[]edit.Edit{edit.Force(false, ".attempts")},
		[]invariant{outcome, miscounted},
	},
}
