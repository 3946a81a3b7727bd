package main

import (
	"fmt"
	"math"

	"github.com/carddata/carddata-go/internal/benchmark/process"
)

var bulkRows = append([]row{
	bulkRow(32), bulkRow(64), bulkRow(128),
}, limitRows()...)

const (
	lookupAll = process.LookupAll
	// ownLoop keeps no order and reuses nothing. What LookupAll costs beside it is the
	// price of both.
	ownLoop = process.LoopOver + library
)

// bulkRow compares bulk lookups with so many requests in flight.
func bulkRow(concurrency int) row {
	return row{
		name: fmt.Sprintf("bulk-%d", concurrency),
		work: fmt.Sprintf("Bulk lookups of cards that are all different, %d requests in flight at a service in memory that "+
			"takes 20 ms for each. The bound is what this latency lets through; the memory is the process's peak.", concurrency),
		open: func(e *environment) (round, error) {
			var all []contestant
			for contestant, seconds := range map[string]float64{lookupAll: 1, ownLoop: 1, process.LoopOver + byHand: 0.3} {
				if e.quick {
					seconds = 0.1
				}
				all = append(all, e.working(contestant, process.Job{Work: "bulk", Contestant: contestant, Concurrency: concurrency, Seconds: seconds}))
			}
			return inTurn(all), nil
		},
		targets: []target{
			{unit: "% of the bound", of: lookupAll, peer: ownLoop, bound: atLeast(0.92)},
			{unit: "% of the bound", of: lookupAll, peer: process.LoopOver + byHand, bound: atLeast(1.5)},
			{unit: "MiB", of: lookupAll, bound: atMost(64)},
		},
	}
}

// limitRows are bulk lookups under a limit, at services that count.
func limitRows() []row {
	var all []row
	for _, limit := range []float64{100, 1000, 5000} {
		for _, faults := range []bool{false, true} {
			name, work := fmt.Sprintf("limit-%.0f", limit), fmt.Sprintf("Bulk lookups at a service that allows %.0f requests a second", limit)
			if faults {
				name, work = name+"-faults", work+", one in five of them with 503"
			}
			all = append(all, row{
				name: name,
				work: work + ", with short responses, as the service counts them; results are in order where it does not fail. Limiters are set to 99.5 % of that rate, with a burst of 1.",
				open: func(e *environment) (round, error) {
					job := process.Job{Work: "limit", Limit: limit, Faults: faults, Seconds: 1.1}
					if e.quick {
						job.Seconds = math.Max(0.1, 20/limit)
					}
					var all []contestant
					for _, contestant := range []string{lookupAll, ownLoop, process.LimitedBefore} {
						job.Contestant = contestant
						all = append(all, e.working(contestant, job))
					}
					return inTurn(all), nil
				},
				targets: []target{
					{unit: "% of the allowed rate", of: lookupAll, peer: ownLoop, bound: atLeast(0.92)},
					{unit: "MiB", of: lookupAll, bound: atMost(64)},
					{unit: "% of it in the busiest second", of: lookupAll, bound: atMost(102)},
				},
			})
		}
	}
	return all
}
