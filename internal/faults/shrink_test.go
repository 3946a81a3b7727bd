package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// shrink leaves faults out of a schedule that broke a promise, as long as it
// breaks the same one, and returns its last run that did.
func shrink(t *testing.T, draw func(seed uint64) *schedule, failed *world) *world {
	promise := failed.violations[0].invariant
	breaks := func(w *world) bool {
		return slices.ContainsFunc(w.violations, func(v violation) bool { return v.invariant == promise })
	}
	const patience = 20 * time.Second
	until := time.Now().Add(patience)
	for part := len(failed.met); part > 0; {
		smaller := false
		for from := 0; from < len(failed.met) && time.Now().Before(until); {
			to := min(from+part, len(failed.met))
			if w := run(t, failed.leaveOut(draw(failed.seed), failed.met[from:to])); breaks(w) {
				failed, smaller = w, true // its faults are fewer: those at from are others now
			} else {
				from = to
			}
		}
		if part = min(part, len(failed.met)+1) / 2; part == 0 && smaller {
			part = 1
		}
	}
	return failed
}

// leaveOut makes smaller, which is the same schedule, do without some more faults.
func (s *schedule) leaveOut(smaller *schedule, these []befallen) *schedule {
	smaller.without = map[string]bool{}
	for name := range s.without {
		smaller.without[name] = true
	}
	for _, b := range these {
		smaller.without[b.name] = true
	}
	return smaller
}

// table tells what befell whom.
func (w *world) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d faults of this schedule", len(w.met))
	if left := len(w.without); left > 0 {
		fmt.Fprintf(&b, " (%d others make no difference)", left)
	}
	b.WriteString(":\n")
	lines := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, m := range w.met {
		fmt.Fprintf(lines, "  %s\t%s\n", m.name, m.fault)
	}
	lines.Flush()
	return b.String()
}
