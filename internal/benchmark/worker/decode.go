package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"testing"

	"github.com/carddata/carddata-go/internal/benchmark/byhand"
	"github.com/carddata/carddata-go/internal/benchmark/process"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// decode reads a response of 50 cards into the structs of a hand-written client, by the
// encoding/json that the worker was built with: see engines in rows_gotest.go.
func decode(job process.Job) (process.Sample, error) {
	body, err := decodedForms(job.Form)
	if err != nil {
		return nil, err
	}
	testing.Init()
	if err := flag.Set("test.benchtime", fmt.Sprint(job.Seconds, "s")); err != nil {
		return nil, err
	}
	var failed error
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var resp byhand.LookupResponse
			if err := unmarshal(body, &resp); err != nil {
				failed = err
				b.FailNow()
			}
		}
	})
	if failed != nil || r.N == 0 {
		return nil, errors.Join(errors.New("nothing was decoded"), failed)
	}
	n := float64(r.N)
	return process.Sample{"ns": float64(r.T.Nanoseconds()) / n, "allocs": float64(r.MemAllocs) / n, "B": float64(r.MemBytes) / n}, nil
}

// decodedForms are those of the benchmark in package bins, with the same cards.
func decodedForms(form string) ([]byte, error) {
	var response struct {
		Cards []json.RawMessage `json:"cards"`
	}
	for i := range 50 {
		response.Cards = append(response.Cards, sandbox.SyntheticCard(fmt.Sprintf("4%09d", i*37)))
	}
	body, err := json.Marshal(response)
	if err != nil {
		return nil, err
	}
	switch form {
	case "documented":
		return body, nil
	case "alphabetical":
		var generic any
		if err := json.Unmarshal(body, &generic); err != nil {
			return nil, err
		}
		return json.Marshal(generic)
	case "indented":
		var indented bytes.Buffer
		err := json.Indent(&indented, body, "", "  ")
		return indented.Bytes(), err
	}
	return nil, fmt.Errorf("there is no form %q", form)
}
