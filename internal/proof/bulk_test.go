package proof

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// A bulkJob is one bulk lookup, run in a process of its own so that its memory
// can be told.
type bulkJob struct {
	URL      string
	Inputs   int
	Ranges   int // 0: distinct BINs instead of card numbers
	Distinct int
	Bulk     bool // assume that ranges share answers
	Prefix   int
}

type bulkReport struct {
	Progress   bins.BulkProgress
	Wrong      int // answers that differ from the one asked for alone
	Unanswered int
	RangesMet  int
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
	met := map[string]bool{}
	next := 0
	o := bins.BulkOptions{
		Ranges: job.Bulk, PrefixLength: job.Prefix,
		Memory:   bins.NewMemoryCache(bins.CacheOptions{Entries: 600_000}),
		Progress: func(p bins.BulkProgress) { report.Progress = p },
	}
	for r, err := range client.LookupAll(context.Background(), job.cards(), o) {
		want, _ := expect()
		if err != nil || r.Index != next || r.Input.Reveal() != want {
			report.Unanswered++
			continue
		}
		next++
		prefix := sandbox.SyntheticRange(want)
		if job.Ranges > 0 {
			met[prefix] = true
		}
		if !answers(r.Result, prefix) {
			report.Wrong++
		}
	}
	report.RangesMet, report.PeakMiB = len(met), peakMiB()
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

// cards yields the job's input, the same each time: BINs of 8 digits, or card
// numbers with a skewed distribution over their ranges.
func (job *bulkJob) cards() iter.Seq[string] {
	return func(yield func(string) bool) {
		rnd := rand.New(rand.NewPCG(1, 2))
		if job.Ranges == 0 {
			for range job.Inputs {
				if !yield(fmt.Sprintf("4%07d", rnd.IntN(job.Distinct))) {
					return
				}
			}
			return
		}
		ranges := syntheticRanges(job.Ranges)
		zipf := rand.NewZipf(rnd, 1.01, 1, uint64(len(ranges)-1))
		for range job.Inputs {
			prefix := ranges[zipf.Uint64()]
			if !yield(fmt.Sprintf("%s%0*d", prefix, 16-len(prefix), rnd.Int64N(pow10(16-len(prefix))))) {
				return
			}
		}
	}
}

// syntheticRanges returns n ranges of the synthetic data set, in random order.
func syntheticRanges(n int) []string {
	var ranges []string
	for p := 400_000; len(ranges) < n; p++ {
		prefix := fmt.Sprint(p)
		depth := len(sandbox.SyntheticRange(prefix))
		for child := range pow10(depth - 6) {
			suffix := ""
			if depth > 6 {
				suffix = fmt.Sprintf("%0*d", depth-6, child)
			}
			ranges = append(ranges, prefix+suffix)
		}
	}
	ranges = ranges[:n]
	rand.New(rand.NewPCG(3, 4)).Shuffle(n, func(i, j int) { ranges[i], ranges[j] = ranges[j], ranges[i] })
	return ranges
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}

func serve(t *testing.T) (*sandbox.Engine, string) {
	t.Helper()
	engine := sandbox.New()
	engine.Retain(1)
	engine.SetLookup(sandbox.SyntheticCard)
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return engine, server.URL()
}

// TestBulkSendsEachBINOnce: an input of any length needs one request for each 50
// distinct BINs, and the same memory.
func TestBulkSendsEachBINOnce(t *testing.T) {
	inputs := []int{200_000, 1_000_000}
	switch {
	case racing:
		inputs = inputs[:1]
	case *full:
		inputs = append(inputs, 10_000_000)
	}
	for _, n := range inputs {
		engine, url := serve(t)
		report := (&bulkJob{URL: url, Inputs: n, Distinct: 20_000}).start(t)
		t.Logf("%d inputs: %+v, %d requests at the service, peak %d MiB", n, report.Progress, engine.RequestCount(sandbox.Bins), report.PeakMiB)
		if report.Wrong > 0 || report.Unanswered > 0 || report.Progress.Done != n {
			t.Errorf("%d inputs: %+v", n, report)
		}
		if requests := engine.RequestCount(sandbox.Bins); requests > 408 {
			t.Errorf("%d inputs took %d requests, want 400 and at most 2 %% more", n, requests)
		}
		if report.PeakMiB >= 64 && !racing {
			t.Errorf("%d inputs took %d MiB", n, report.PeakMiB)
		}
	}
}

// TestBulkByRanges: card numbers need one place in a request for each range that
// they meet, and no answer is another card's.
func TestBulkByRanges(t *testing.T) {
	inputs, ranges := 300_000, 40_000
	if *full {
		inputs, ranges = 5_000_000, 400_000
	}
	engine, url := serve(t)
	report := (&bulkJob{URL: url, Inputs: inputs, Ranges: ranges, Bulk: true}).start(t)
	requests := engine.RequestCount(sandbox.Bins)
	t.Logf("by range: %+v, %d ranges met, %d requests, peak %d MiB", report.Progress, report.RangesMet, requests, report.PeakMiB)
	if report.Wrong > 0 || report.Unanswered > 0 || report.Progress.Done != inputs {
		t.Errorf("%d wrong, %d unanswered, %d done", report.Wrong, report.Unanswered, report.Progress.Done)
	}
	if most := 11*report.RangesMet/10/bins.MaxCards + 8; requests > most {
		t.Errorf("%d requests for %d ranges, want at most %d", requests, report.RangesMet, most)
	}
	if !*full {
		return
	}
	for _, prefix := range []int{0, 6, 8} {
		engine, url := serve(t)
		job := &bulkJob{URL: url, Inputs: inputs, Ranges: ranges, Prefix: prefix}
		if prefix == 0 {
			job.Inputs /= 10 // every card number is asked for, which takes its time
		}
		report := job.start(t)
		t.Logf("by the first %d digits (0: by all): %d inputs, %d requests, %d wrong (%.1f %%)", prefix, job.Inputs,
			engine.RequestCount(sandbox.Bins), report.Wrong, 100*float64(report.Wrong)/float64(job.Inputs))
	}
}
