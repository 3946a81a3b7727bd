package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

var importRows = []row{{
	name: "import",
	work: "What importing costs a program that looks a card up, beyond one that does so with net/http and encoding/json: " +
		"size of the stripped binary, packages linked, and the time that packages take to initialise, these two in all.",
	open: openImport,
	targets: []target{
		{unit: "MiB of binary added", peer: everyClient, bound: atMost(1)},
		{unit: "packages", peer: everyClient, bound: atMost(1)},
		{unit: "ns to initialise", peer: everyClient, bound: atMost(1)},
	},
}}

// openImport builds the programs, and runs them in every round.
func openImport(e *environment) (round, error) {
	const plain = "nethttp"
	baseline, err := linkedSize(e, plain)
	if err != nil {
		return nil, err
	}
	var all []contestant
	for _, program := range []struct{ name, contestant string }{
		{"carddata", library}, {"resty2", "go-resty/resty/v2"}, {"resty3", "resty.dev/v3"}, {"req", "imroc/req/v3"}, {"stripe", "stripe-go/v84"},
	} {
		size, err := linkedSize(e, program.name)
		if err != nil {
			return nil, err
		}
		packages, err := exec.Command("go", "list", "-deps", "./linked/"+program.name).Output()
		if err != nil {
			return nil, err
		}
		all = append(all, contestant{program.contestant, func() (sample, error) {
			took, err := initTime(filepath.Join(e.dir, program.name))
			return sample{
				"MiB of binary added": float64(size-baseline) / (1 << 20),
				"packages":            float64(bytes.Count(packages, []byte("\n"))),
				"ns to initialise":    took,
			}, err
		}})
	}
	return inTurn(all), nil
}

func linkedSize(e *environment, name string) (int64, error) {
	program := filepath.Join(e.dir, name)
	if err := build(program, "./linked/"+name, "-trimpath", "-ldflags=-s -w"); err != nil {
		return 0, err
	}
	info, err := os.Stat(program)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// initTime runs a program, whose address leads nowhere, and adds up what the
// runtime tells of the initialisation of its packages.
func initTime(program string) (float64, error) {
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1", "BIN_URL=http://127.0.0.1:1")
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		return 0, err
	}
	total := 0.0
	for line := range strings.Lines(trace.String()) {
		// init NAME @AT ms, TOOK ms clock, BYTES bytes, COUNT allocs
		var name string
		var at, took float64
		if _, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock", &name, &at, &took); err == nil {
			total += took * 1e6
		}
	}
	if total == 0 {
		return 0, fmt.Errorf("no trace of the initialisation in %q", trace.String())
	}
	return total, nil
}
