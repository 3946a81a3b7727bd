package faults

import "github.com/carddata/carddata-go/internal/faults/edit"

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
