package faults

import "github.com/carddata/carddata-go/internal/faults/edit"

// resultDefects give wrong results and contents.
var resultDefects = []defect{
	{
		"downloads", "a broken download is complete", readStream,
		[]edit.Edit{edit.Everywhere(edit.Rewrite("explain()", "func() error { _ = {it}; return io.EOF }()"))},
		[]invariant{wrongBytes},
	},
	{
		"downloads", "a stalled download waits", readStream,
		[]edit.Edit{edit.Drop("timer.Reset()")},
		[]invariant{overdue},
	},
	{
		"lookups", "a response that is no JSON is an empty one", decodeBody,
		[]edit.Edit{edit.Everywhere(edit.IgnoreError("json.Unmarshal()"))},
		[]invariant{wrongAnswer},
	},
	{
		"bulk", "items are taken by their position", correlateItems,
		[]edit.Edit{edit.Returns(`func() []int {
			found := make([]int, len({1}))
			for i := range found {
				if found[i] = i; i >= len({2}) {
					found[i] = -1
				}
			}
			return found
		}()`)},
		[]invariant{wrongAnswer},
	},
	{
		"bulk", "a card that no item names takes the one at its place", correlateItems,
		[]edit.Edit{edit.Result(`func(found []int) []int {
			for i := range found {
				if found[i] < 0 && i < len({2}) {
					found[i] = i
				}
			}
			return found
		}({it})`)},
		[]invariant{wrongAnswer},
	},
	{
		"bulk", "identifiers of which one begins with the other share a request", separateNested,
		[]edit.Edit{edit.Returns("[][]*lookup{ {1} }")},
		[]invariant{wrongAnswer},
	},
	{
		"loads", "a loader's identifiers of which one begins with the other share a request", mayJoin,
		[]edit.Edit{edit.Returns("true")},
		[]invariant{wrongAnswer},
	},
	{
		"bulk", "a name is overruled by the position", weighItems,
		[]edit.Edit{edit.Everywhere(edit.Drop("byName()"))},
		[]invariant{wrongAnswer, unanswered},
	},
	{
		"loads", "a caller that leaves a loader ends the request of all", leaveRequest,
		[]edit.Edit{edit.Force(true, ".waiters")},
		[]invariant{wrongAnswer, overdue},
	},
	{
		"loads", "a loader's card is asked for under another's response", loadCard,
		[]edit.Edit{edit.Force(true, ".sent")},
		[]invariant{wrongAnswer},
	},
	{
		"downloads", "any part is the rest of a download", admitPart,
		[]edit.Edit{edit.Force(false, ".offset")},
		[]invariant{wrongBytes},
	},
	{
		"downloads", "a whole response is the rest of a download", admitResponse,
		[]edit.Edit{edit.Force(true, "{2}")},
		[]invariant{wrongBytes},
	},
	{
		"downloads", "the end of a part is that of the content", readDownload,
		[]edit.Edit{edit.Force(true, ".Length", "0")},
		[]invariant{wrongBytes},
	},
	{
		"downloads", "resumes are not bounded", stopResuming,
		[]edit.Edit{edit.Force(false, "stall.spent")},
		[]invariant{tooOften},
	},
	{
		"files", "a file is done before its content", fetchFile,
		[]edit.Edit{edit.Rewrite("io.CopyBuffer()", "func() (int64, error) { n, _ := {it}; return n, {1}.Err() }()")},
		[]invariant{wrongBytes},
	},
}
