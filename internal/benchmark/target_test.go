package main

import (
	"strings"
	"testing"
)

// measured is a result of three rounds.
func measured() *result {
	r := &result{}
	for _, round := range [3][2]float64{{1, 10}, {20, 100}, {3, 10}} {
		r.add(map[string]sample{library: {"ns": round[0], "%": 99}, "peer": {"ns": round[1]}, "none": {"ns": 0}})
	}
	for _, f := range r.Figures {
		f.Spread = spreadOf(f.Rounds)
	}
	return r
}

// TestTargets: a ratio is the median of the rounds' ratios, and not the ratio of
// the medians; what is missed shows as missed, and what was not measured too.
func TestTargets(t *testing.T) {
	for _, test := range []struct {
		target target
		met    []bool
		median float64
	}{
		{target{unit: "ns", peer: "peer", bound: atMost(0.2)}, []bool{true}, 0.2},
		{target{unit: "ns", peer: "peer", bound: atMost(0.19)}, []bool{false}, 0.2},
		{target{unit: "ns", peer: everyClient, bound: atMost(0.2)}, []bool{true}, 0.2}, // nothing is a share of 0
		{target{unit: "%", bound: atLeast(99)}, []bool{true}, 99},
		{target{unit: "%", bound: atLeast(99.5)}, []bool{false}, 99},
		{target{unit: "ns", bound: atMost(0)}, []bool{false}, 3},
		{target{unit: "B", bound: atMost(1)}, []bool{false}, 0},
		{target{unit: "ns", peer: "stranger", bound: atMost(1)}, []bool{false}, 0},
	} {
		verdicts := test.target.verdicts(measured())
		if len(verdicts) != len(test.met) {
			t.Fatalf("%+v: %+v", test.target, verdicts)
		}
		for i, v := range verdicts {
			if v.Met != test.met[i] || v.Measured.Median != test.median {
				t.Errorf("%+v: %+v", test.target, v)
			}
		}
	}
	report := report{Results: []*result{{Row: "row", Verdicts: target{unit: "ns", bound: atMost(1)}.verdicts(measured())}}}
	if text, err := report.markdown(); err != nil || !strings.Contains(text, "0 of 1 met") || !strings.Contains(text, "**missed**") {
		t.Error(text, err)
	}
}

func TestRowsHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.name] || strings.Contains(r.name, ",") || r.work == "" || len(r.targets) == 0 && r.growth == nil {
			t.Errorf("row %+v", r)
		}
		seen[r.name] = true
	}
}
