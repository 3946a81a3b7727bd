package main

import (
	"github.com/carddata/carddata-go/internal/benchmark/process"
)

const (
	unhashed = library + " without hash"
	copied   = "io.Copy"
	hashed   = "io.Copy teed into SHA-256"
)

var downloadRows = []row{downloadRow("download-http", "", false, 2), downloadRow("download-tls", " with TLS", true, 1.4)}

// downloadRow compares downloads, of which the one without a hash is to be so many
// times as fast as io.Copy.
func downloadRow(name, how string, tls bool, faster float64) row {
	return row{
		name: name,
		work: "The download of 1 GiB over the loopback" + how + " into a file, until it is on the disk; the time is that of one MiB.",
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
			{unit: "ns", peer: hashed, bound: atMost(1 / 1.5)},
			{unit: "ns", of: unhashed, peer: copied, bound: atMost(1 / faster)},
			{unit: "MiB", bound: atMost(10)},
			{unit: "MiB", of: unhashed, bound: atMost(10)},
		},
	}
}
