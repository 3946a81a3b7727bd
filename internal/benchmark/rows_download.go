package main

import (
	"github.com/carddata/carddata-go/internal/benchmark/process"
)

const (
	unhashed = library + " without hash"
	copied   = "io.Copy"
	hashed   = "io.Copy teed into SHA-256"
)

var downloadRows = []row{downloadRow("download-http", "", false), downloadRow("download-tls", " with TLS", true)}

// downloadRow compares downloads.
func downloadRow(name, how string, tls bool) row {
	return row{
		name: name,
		work: "The download of 1 GiB over the loopback" + how + " into a file, until it is on the disk; the time is for one MiB.",
		open: func(e *environment) (round, error) {
			job := process.Job{Work: "download", Size: 1024, Repeat: 1, TLS: tls}
			if e.quick {
				job.Size = 16
			}
			var all []contestant
			for _, contestant := range []string{library, unhashed, copied, hashed} {
				job.Contestant = contestant
				all = append(all, e.working(contestant, job))
			}
			return inTurn(all), nil
		},
		targets: []target{
			{unit: "ns", peer: hashed, bound: atMost(1)},
			{unit: "ns", of: unhashed, peer: copied, bound: atMost(1.25)},
			{unit: "MiB", peer: hashed, bound: atMost(1.2)},
			{unit: "MiB", of: unhashed, peer: copied, bound: atMost(1.1)},
		},
	}
}
