package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"
)

// A report is a run of the program.
type report struct {
	Quota    float64   `json:"quota_per_second"`
	Replicas []int     `json:"replicas"` // goroutines of each
	Results  []*result `json:"strategies"`
}

// A result is what a strategy came to.
type result struct {
	Strategy string `json:"strategy"`
	counts
	Seconds    float64 `json:"seconds"`
	Throughput float64 `json:"throughput_percent"` // accepted, of what the quota allows
	Excess     float64 `json:"refused_percent"`    // refused, of the same
	Failed     int     `json:"failed_lookups"`
	WaitP50    float64 `json:"wait_p50_seconds"`
	WaitP99    float64 `json:"wait_p99_seconds"`
}

func (c counts) since(before counts) counts {
	return counts{c.Requests - before.Requests, c.Refused - before.Refused}
}

func newResult(strategy string, arrived counts, took time.Duration, outcomes []*outcome) *result {
	allowed := quotaLimit * took.Seconds()
	r := &result{
		Strategy: strategy, counts: arrived, Seconds: took.Seconds(),
		Throughput: 100 * float64(arrived.Requests-arrived.Refused) / allowed,
		Excess:     100 * float64(arrived.Refused) / allowed,
	}
	var waits []time.Duration
	for _, o := range outcomes {
		waits = append(waits, o.Waits...)
		r.Failed += o.Failed
	}
	slices.Sort(waits)
	r.WaitP50, r.WaitP99 = percentile(waits, 50), percentile(waits, 99)
	return r
}

// percentile returns the smallest of sorted waits that p percent do not exceed.
func percentile(sorted []time.Duration, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(math.Ceil(p/100*float64(len(sorted))))-1].Seconds()
}

func (r *report) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "LIMITER\tREQUESTS\t429s\tOF THE QUOTA\tWAIT P50\tWAIT P99\tFAILED LOOKUPS")
	for _, s := range r.Results {
		fmt.Fprintf(table, "%s\t%d\t%d\t%.0f %%\t%.2f s\t%.2f s\t%d\n",
			s.Strategy, s.Requests, s.Refused, s.Throughput, s.WaitP50, s.WaitP99, s.Failed)
	}
	return table.Flush()
}

func (r *report) json() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	return append(text, '\n'), err
}
