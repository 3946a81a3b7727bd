package faults

import "github.com/carddata/carddata-go/internal/faults/edit"

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
