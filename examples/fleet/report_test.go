package main

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	first := &outcome{Lookups: 99, Failed: 2}
	for i := range 99 {
		first.Waits = append(first.Waits, time.Duration(99-i)*10*time.Millisecond)
	}
	r := &report{Quota: quotaLimit, Replicas: []int{3, 1}, Results: []*result{
		newResult("all", counts{1000, 400}, 2*time.Second, []*outcome{first, {Lookups: 1, Waits: []time.Duration{time.Hour}}}),
		newResult("nothing", counts{}, 2*time.Second, []*outcome{{}}),
	}}
	var text bytes.Buffer
	if err := r.print(&text); err != nil {
		t.Fatal(err)
	}
	const want = `LIMITER  REQUESTS  429s  OF THE QUOTA  WAIT P50  WAIT P99  FAILED LOOKUPS
all      1000      400   150 %         0.50 s    0.99 s    2
nothing  0         0     0 %           0.00 s    0.00 s    0
`
	if text.String() != want {
		t.Errorf("%s", &text)
	}
	text.Reset()
	if err := r.draw(&text); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"What 2 replicas make of one quota of 200 requests a second",
		"150 % of the quota, 400 × 429, p99 wait 0.99 s",
		// 150 and 100 of 250 percent of 600 pixels, and where 100 percent ends.
		`class="accepted" x="20" y="75" width="360.0"`, `class="refused" x="380.0" y="75" width="240.0"`, `class="quota" x1="260.0"`,
	} {
		if !bytes.Contains(text.Bytes(), []byte(part)) {
			t.Errorf("no %q in\n%s", part, &text)
		}
	}
}

func TestPercentile(t *testing.T) {
	var waits []time.Duration
	for i := range 200 {
		waits = append(waits, time.Duration(i+1)*time.Second)
	}
	for p, want := range map[float64]float64{1: 2, 50: 100, 99: 198, 100: 200} {
		if got := percentile(waits, p); got != want {
			t.Errorf("percentile %v: %v, want %v", p, got, want)
		}
	}
	if !slices.IsSorted(waits) || percentile(nil, 99) != 0 {
		t.Error("of nothing")
	}
}
