package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gojson "github.com/goccy/go-json"
	"golang.org/x/perf/benchfmt"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// testBenchmarks measures benchmarks of the library's own tests, which reach
// what is not exported. naming says which contestant a benchmark is.
func testBenchmarks(e *environment, pattern string, naming func(benchmark string) string) (round, error) {
	program := filepath.Join(e.dir, "bins.test")
	if err := goCommand("-C", "../..", "test", "-c", "-o", program, "./bins"); err != nil {
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

// openDecode measures the decoder beside encoding/json and beside checks of the
// syntax alone.
func openDecode(e *environment) (round, error) {
	tests, err := testBenchmarks(e, "^BenchmarkDecode$", func(benchmark string) string {
		parts := strings.Split(benchmark, "/") // Decode, form, decoder
		switch parts[2] {
		case "decode":
			parts[2] = library
		case "encoding-json":
			parts[2] = "encoding/json"
		case "valid":
			parts[2] = "json.Valid"
		}
		return parts[2] + ", " + parts[1]
	})
	if err != nil {
		return nil, err
	}
	body := answerOfTests()
	valid := timed("", 1, func(b *testing.B) {
		for b.Loop() {
			if !gojson.Valid(body) {
				b.Fatal("not valid")
			}
		}
	})
	return func(number int) (map[string]sample, error) {
		samples, err := tests(number)
		if err != nil {
			return nil, err
		}
		samples["goccy/go-json's Valid, documented"], err = valid.run()
		return samples, err
	}, nil
}

// answerOfTests is the answer that the decoder's benchmark decodes.
func answerOfTests() []byte {
	var answer struct {
		Cards []json.RawMessage `json:"cards"`
	}
	for i := range 50 {
		answer.Cards = append(answer.Cards, sandbox.SyntheticCard(fmt.Sprintf("4%09d", i*37)))
	}
	body, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return body
}
