package faults

import "github.com/carddata/carddata-go/internal/faults/edit"

// refundDefects lose or double refunds, or tell their callers another outcome.
var refundDefects = []defect{
	{
		"submits", "a refund of unknown outcome is repeated", mayRetry,
		[]edit.Edit{edit.Force(true, "RepeatUnknown")},
		[]invariant{doubled},
	},
	{
		"submits", "a broken connection proves that nothing was sent", provesUnsent,
		[]edit.Edit{edit.Returns("{recv}.Traced && !{recv}.ResponseStarted")},
		[]invariant{doubled, outcome},
	},
	{
		"submits", "an unfinished request proves that nothing was sent", provesUnsent,
		[]edit.Edit{edit.Returns("!{recv}.Connected || !{recv}.RequestWritten")},
		[]invariant{doubled, outcome},
	},
	{
		"submits", "no events prove that nothing was sent", provesUnsent,
		[]edit.Edit{edit.Force(true, ".Traced")},
		[]invariant{doubled, outcome},
	},
	{
		"submits", "a refund whose caller left was not sent", callerLeft,
		[]edit.Edit{edit.Element(rowType, rowOutcome, "OutcomeNotSent")},
		[]invariant{outcome},
	},
	{
		"submits", "a 500 refuses a refund", failed500,
		[]edit.Edit{edit.Element(rowType, rowOutcome, "OutcomeRejected")},
		[]invariant{doubled, outcome},
	},
	{
		"submits", "a 503 refuses a refund", failed503,
		[]edit.Edit{edit.Element(rowType, rowOutcome, "OutcomeRejected")},
		[]invariant{doubled, outcome},
	},
	{
		"submits", "a 408 refuses a refund", failed408,
		[]edit.Edit{edit.Element(rowType, rowOutcome, "OutcomeRejected")},
		[]invariant{outcome, doubled},
	},
	{
		"submits", "a 302 refuses a refund", moved302,
		[]edit.Edit{edit.Element(rowType, rowOutcome, "OutcomeRejected")},
		[]invariant{outcome},
	},
	{
		"submits", "an HTML page accepts a refund", pageOfHTML,
		[]edit.Edit{edit.Element(rowType, rowOutcome, "OutcomeAccepted")},
		[]invariant{outcome},
	},
	{
		"submits", "a cut response to an accepted refund fails it", cutOff,
		[]edit.Edit{edit.Element(rowType, rowOutcome, "OutcomeRejected")},
		[]invariant{outcome, doubled},
	},
	{
		"submits", "a resubmitted refund that is refused was not recorded", callResult,
		[]edit.Edit{edit.Force(false, ".ambiguous", "nil")},
		[]invariant{outcome},
	},
	{
		"submits", "redirects are followed with refunds", checkRedirect,
		[]edit.Edit{edit.Force(false, "MethodGet")},
		[]invariant{outcome, miscounted, tooOften},
	},
	{
		"submits", "net/http may send a body again", sendAttempt,
		[]edit.Edit{edit.Force(true, "=call.Body", "call.Write")},
		[]invariant{resent, doubled},
	},
	{
		"submitAll", "records with one id are in flight together", addRecord,
		[]edit.Edit{edit.Force(false, "=.blocked")},
		[]invariant{outcome},
	},
	{
		"submitAll", "a bulk submission repeats an unknown outcome", receiveRecord,
		[]edit.Edit{edit.Before("complete()", "if errors.Is({1}.err, ErrOutcomeUnknown) && {recv}.stopErr == nil { {recv}.ready = append({recv}.ready, {1}); return }")},
		[]invariant{doubled, miscounted, tooOften, outcome},
	},
	{
		"submitAll", "a bulk submission goes on after its end", sendRecord,
		[]edit.Edit{edit.Rewrite(".ctx", "context.WithoutCancel({it})")},
		[]invariant{overdue},
	},
	{
		"submitAll", "the grace has no end", newSubmitAll,
		[]edit.Edit{edit.Before("time.AfterFunc()", "{3}.Grace = time.Hour")},
		[]invariant{overdue},
	},
	{
		"submitAll", "a bulk submission that is left forgets what is in flight", abandonRecords,
		[]edit.Edit{edit.Negate("Abandoned", "nil")},
		[]invariant{outcome, miscounted},
	},
	{
		"submitAll", "a result has the place of another", addRecord,
		[]edit.Edit{edit.Drop(".index")},
		[]invariant{outcome},
	},
	{
		"submitAll", "results are yielded as they come although order was asked for", completeRecord,
		[]edit.Edit{edit.Force(false, "Ordered")},
		[]invariant{outcome},
	},
	{
		"submitAll", "a bulk submission has one more in flight", maySendRecord,
		[]edit.Edit{edit.Everywhere(edit.Rewrite("o.Concurrency", "({it}+1)"))},
		[]invariant{overLimit},
	},
	{
		"submitAll", "the attempts of a submission are not its own", submissionOf,
		[]edit.Edit{edit.Rewrite(".attempts", "min({it}, 1)")},
		[]invariant{miscounted},
	},
}
