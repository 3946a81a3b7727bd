package main

import "github.com/carddata/carddata-go/internal/benchmark/process"

var wireRows = []row{
	{
		name: "connections",
		work: "Connections that 2,000 requests open, 32 of them in flight at a service on the loopback that takes 20 ms for each short response.",
		open: func(e *environment) (round, error) {
			return wireContest(e, process.Job{Work: "connections", Size: 2000, Concurrency: 32}, [][3]string{
				{lookupAll, lookupAll, ""},
				{byHand, "errgroup over " + byHand, "http.DefaultTransport"},
				{"go-retryablehttp", "errgroup over go-retryablehttp", "go-retryablehttp's transport"},
			})
		},
		targets: []target{{unit: "connections", of: lookupAll, bound: atMost(32)}},
	},
	{
		name: "timeouts",
		work: "2,000 lookups over TLS, 32 in flight at a service that takes 20 ms for each short response and 60 ms more on a new connection, " +
			"where every 20th is given up after 5 ms.",
		open: func(e *environment) (round, error) {
			return wireContest(e, process.Job{Work: "timeouts", Size: 2000, Concurrency: 32}, [][3]string{
				{library, library, ""},
				{byHand + ", 1,024 idle connections", byHand, "1,024 idle connections"},
				{"go-retryablehttp, 1,024 idle connections", "go-retryablehttp", "1,024 idle connections"},
			})
		},
		targets: []target{{unit: "% of the bound", peer: byHand + ", 1,024 idle connections", bound: atLeast(1)}},
	},
}

// wireContest compares contestants over transports.
func wireContest(e *environment, job process.Job, contestants [][3]string) (round, error) {
	if e.quick {
		job.Size /= 10
	}
	var all []contestant
	for _, c := range contestants {
		job.Contestant, job.Transport = c[1], c[2]
		all = append(all, e.working(c[0], job))
	}
	return inTurn(all), nil
}
