package main

import (
	"bytes"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/carddata/carddata-go/internal/benchmark/process"
)

// testBenchmarks measures benchmarks of the library's own tests, which reach
// what is not exported. naming says which contestant a benchmark is.
func testBenchmarks(e *environment, pattern string, naming func(benchmark string) string) (round, error) {
	program := filepath.Join(e.dir, "bins.test")
	if err := goCommand("", "-C", "../..", "test", "-c", "-o", program, "./bins"); err != nil {
		return nil, err
	}
	return func(int) (map[string]sample, error) {
		cmd := exec.Command(program, "-test.run=^$", "-test.bench="+pattern, "-test.benchmem", "-test.benchtime="+e.benchtime())
		out, err := cmd.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, out)
		}
		samples := map[string]sample{}
		lines := benchfmt.NewReader(bytes.NewReader(out), "")
		for lines.Scan() {
			r, ok := lines.Result().(*benchfmt.Result)
			if !ok {
				continue
			}
			s := sample{}
			for unit, as := range map[string]struct {
				name  string
				times float64
			}{"sec/op": {"ns", 1e9}, "allocs/op": {"allocs", 1}, "B/op": {"B", 1}} {
				if value, ok := r.Value(unit); ok {
					s[as.name] = value * as.times
				}
			}
			name, _, _ := strings.Cut(string(r.Name), "-"+string(r.Name[bytes.LastIndexByte(r.Name, '-')+1:]))
			samples[naming(name)] = s
		}
		return samples, lines.Err()
	}, nil
}

// engines are the versions of encoding/json, and the settings with which every Go since
// 1.26 has them.
var engines = map[string]string{"encoding/json": "nojsonv2", "encoding/json/v2": "jsonv2"}

// openDecode measures the decoder beside both versions of encoding/json, which fill the
// structs of a hand-written client, and beside the mere check of the syntax.
func openDecode(e *environment) (round, error) {
	tests, err := testBenchmarks(e, "^BenchmarkDecode$/.*/^(decode|valid)$", func(benchmark string) string {
		parts := strings.Split(benchmark, "/") // Decode, form, decoder
		if parts[2] == "decode" {
			return library + ", " + parts[1]
		}
		return "json.Valid, " + parts[1]
	})
	if err != nil {
		return nil, err
	}
	var others []contestant
	for name, experiment := range engines {
		worker := filepath.Join(e.dir, "worker-"+experiment)
		if err := goCommand(experiment, "build", "-o", worker, "./worker"); err != nil {
			return nil, err
		}
		for _, form := range []string{"documented", "alphabetical", "indented"} {
			others = append(others, contestant{name + ", " + form, func() (sample, error) {
				s, err := process.Run(worker, process.Job{Work: "decode", Form: form, Seconds: e.seconds()})
				delete(s, "MiB")
				return s, err
			}})
		}
	}
	measure := inTurn(others)
	return func(number int) (map[string]sample, error) {
		samples, err := tests(number)
		if err != nil {
			return nil, err
		}
		more, err := measure(number)
		maps.Copy(samples, more)
		return samples, err
	}, nil
}
