package main

import (
	"slices"
	"testing"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

func TestLedgerFindsWhatIsWrong(t *testing.T) {
	const id = "re-1"
	for _, test := range []struct {
		told     bool
		outcome  refunds.Outcome
		recorded int
		wrong    string
	}{
		{true, refunds.OutcomeAccepted, 1, ""},
		{true, refunds.OutcomeUnknown, 0, ""},
		{true, refunds.OutcomeUnknown, 1, ""},
		{true, refunds.OutcomeNotSent, 0, ""},
		{true, refunds.OutcomeRejected, 0, ""},
		{true, refunds.OutcomeAccepted, 0, "a refund was reported accepted and recorded 0 times"},
		{true, refunds.OutcomeNotSent, 1, "a refund was reported not sent and recorded 1 times"},
		{true, refunds.OutcomeRejected, 1, "a refund was reported rejected and recorded 1 times"},
		{true, refunds.OutcomeUnknown, 2, "a refund was recorded 2 times"},
		{true, refunds.OutcomeAccepted, 2, "a refund was recorded 2 times"},
		{false, 0, 1, "a refund was recorded of which nobody was told"},
	} {
		l := newLedger()
		if test.told {
			l.settle(id, test.outcome)
		}
		var want []string
		if test.wrong != "" {
			want = []string{test.wrong}
		}
		if got := l.compare(slices.Repeat([]sandbox.Refund{{RefundID: id}}, test.recorded)); !slices.Equal(got, want) {
			t.Errorf("%+v: %q", test, got)
		}
	}
}

func TestFootprintGrows(t *testing.T) {
	before := footprint{goroutines: 5, heap: 1 << 20, files: 7}
	for want, after := range map[string]footprint{
		"":                                 {4, 2 << 20, 7},
		"6 goroutines, where there were 5": {6, 1 << 20, 7},
		"8 open files, where there were 7": {5, 1 << 20, 8},
		"33554432 bytes of heap, where there were 1048576": {5, 32 << 20, 7},
	} {
		if got := before.outgrownBy(after); got != want {
			t.Errorf("%v: %q", after, got)
		}
	}
}
