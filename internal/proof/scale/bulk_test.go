package scale

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// A bulkJob is one bulk lookup, run in a process of its own so that its memory
// can be told.
type bulkJob struct {
	URL      string
	Inputs   int
	Distinct int
}

type bulkReport struct {
	Progress   bins.BulkProgress
	Wrong      int // answers that differ from the one asked for alone
	Unanswered int
	PeakMiB    int
}

func (job *bulkJob) run() any {
	var report bulkReport
	client, err := bins.NewClient(job.URL, bins.StaticToken("key"))
	if err != nil {
		panic(err)
	}
	expect, stop := iter.Pull(job.cards())
	defer stop()
	next := 0
	o := bins.BulkOptions{
		Memory:   bins.NewMemoryCache(bins.CacheOptions{}),
		Progress: func(p bins.BulkProgress) { report.Progress = p },
	}
	for r, err := range client.LookupAll(context.Background(), job.cards(), o) {
		want, _ := expect()
		if err != nil || r.Err != nil || r.Index != next || r.Input.Reveal() != want {
			report.Unanswered++
			continue
		}
		next++
		if !answers(r.Result, sandbox.SyntheticRange(want)) {
			report.Wrong++
		}
	}
	report.PeakMiB = peakMiB()
	return report
}

// answers tells whether a result is that of the range of a card. Its bounds name
// the range, from which everything else in the sandbox follows.
func answers(r bins.Result, prefix string) bool {
	card, err := r.Card()
	return err == nil && card.BINMin == prefix+strings.Repeat("0", 19-len(prefix)) &&
		card.BINMax == prefix+strings.Repeat("9", 19-len(prefix))
}

// start runs the job in a process of its own.
func (job *bulkJob) start(t *testing.T) (report bulkReport) {
	t.Helper()
	inChild(t, job, &report)
	return report
}

// cards yields the job's input, the same each time: BINs of 8 digits.
func (job *bulkJob) cards() iter.Seq[string] {
	return func(yield func(string) bool) {
		rnd := rand.New(rand.NewPCG(1, 2))
		for range job.Inputs {
			if !yield(fmt.Sprintf("4%07d", rnd.IntN(job.Distinct))) {
				return
			}
		}
	}
}

func serve(t *testing.T) (*sandbox.Engine, string) {
	t.Helper()
	fake := sandbox.NewFake(t, sandbox.Bins)
	fake.Retain(1)
	fake.SetLookup(sandbox.SyntheticCard)
	return fake.Engine, fake.URL()
}

// TestBulkSendsEachBINOnce: an input of any length needs one request for each 50
// distinct BINs, and the same memory.
func TestBulkSendsEachBINOnce(t *testing.T) {
	testkit.Long(t)
	inputs := []int{200_000}
	switch {
	case racing:
		inputs = []int{100_000}
	case *full:
		inputs = []int{1_000_000, 10_000_000}
	}
	for _, n := range inputs {
		engine, url := serve(t)
		report := (&bulkJob{URL: url, Inputs: n, Distinct: 10_000}).start(t)
		t.Logf("%d inputs: %+v, %d requests at the service, peak %d MiB", n, report.Progress, engine.RequestCount(sandbox.Bins), report.PeakMiB)
		if report.Wrong > 0 || report.Unanswered > 0 || report.Progress.Done != n {
			t.Errorf("%d inputs: %+v", n, report)
		}
		if requests := engine.RequestCount(sandbox.Bins); requests > 204 {
			t.Errorf("%d inputs took %d requests, want 200 and at most 2 %% more", n, requests)
		}
		if report.PeakMiB >= 64 && !racing {
			t.Errorf("%d inputs took %d MiB", n, report.PeakMiB)
		}
	}
}
