package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/sandbox"
)

const demoBINs = 20_000

// demo runs the pipeline over rows that are made up, against a sandbox that has a
// card for nearly every number, and compares its output with that of a plain loop.
func demo(j *job, rows int, each bool, execute runner) error {
	engine := sandbox.New()
	engine.SetLookup(sandbox.SyntheticCard)
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer server.Close()
	dir, err := os.MkdirTemp("", "carddata-beam-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	j.in, j.out, j.column, j.service.URL = filepath.Join(dir, "rows.csv"), filepath.Join(dir, "out"), "card", server.URL()
	os.Setenv("CARDDATA_API_KEY", "sandbox")
	fmt.Printf("sandbox %s, %d rows\n", server.URL(), rows)
	lines, err := makeRows(j.in, rows)
	if err != nil {
		return err
	}
	began := time.Now()
	if err = j.execute(execute); err != nil {
		return err
	}
	took, requests := time.Since(began), engine.RequestCount(sandbox.Bins)
	want, asked, err := loop(j, lines, each)
	if err != nil {
		return err
	}
	fmt.Printf("pipeline  %.1f s, %d requests\nloop      %.1f s, %d lookups\n", took.Seconds(), requests, (time.Since(began) - took).Seconds(), asked)
	got := map[string]int{}
	names, err := filepath.Glob(j.out + "*.csv") // of both outputs
	for _, name := range names {
		text, failed := os.ReadFile(name)
		err = errors.Join(err, failed)
		for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
			if i > 0 { // the header
				got[line]++
			}
		}
	}
	if err != nil || !maps.Equal(got, want) {
		return errors.Join(err, fmt.Errorf("the outputs differ: %d distinct rows, and %d of the loop", len(got), len(want)))
	}
	fmt.Printf("equal     %d rows\n", rows)
	return nil
}

// makeRows writes rows of 20,000 BINs. A few of their cards are no numbers.
func makeRows(path string, rows int) (lines []string, err error) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		card := fmt.Sprintf("4%07d%08d", (i%demoBINs)*397, random.IntN(1e8))
		if i%1000 == 999 {
			card = "tok_1"
		}
		lines = append(lines, fmt.Sprintf("%d,%s,%d", i, card, random.IntN(1e6)))
	}
	return lines, os.WriteFile(path, []byte("id,card,amount\n"+strings.Join(lines, "\n")), 0o600)
}

// loop looks up by hand, and returns the rows of both outputs.
func loop(j *job, lines []string, each bool) (want map[string]int, asked int, err error) {
	client, err := j.service.client()
	if err != nil {
		return nil, 0, err
	}
	want, answers := map[string]int{}, map[string]Answer{}
	for _, line := range lines {
		card := strings.Split(line, ",")[1]
		id := cut(card, j.prefix)
		answer, known := answers[id]
		if !known || each {
			asked++
			resp, err := client.Lookup(context.Background(), &bins.LookupRequest{Cards: bins.Cards(id)})
			if err != nil {
				return nil, asked, err
			}
			answer = answerOf(&resp.Cards[0], nil)
			answers[id] = answer
		}
		want[(&Rows{Kind: ".csv"}).joined(line, answer)]++
	}
	return want, asked, nil
}
