package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
)

var importRows = []row{{
	name: "import",
	work: "What importing costs a program that looks a card up, beyond one that does so with net/http and encoding/json: " +
		"the size of the stripped binary, and packages linked in all.",
	open: openImport,
	targets: []target{
		{unit: "MiB of binary added", bound: atMost(1)},
	},
}}

// openImport builds the programs.
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
			return sample{
				"MiB of binary added": float64(size-baseline) / (1 << 20),
				"packages":            float64(bytes.Count(packages, []byte("\n"))),
			}, nil
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
