package main

import (
	"maps"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// A spread is a median with what it may as well be: the bounds of its 95 %
// confidence interval, or of all values where they are too few for that.
type spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

func spreadOf(values []float64) spread {
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds), 0.95)
	return spread{s.Center, math.Max(s.Lo, slices.Min(values)), math.Min(s.Hi, slices.Max(values))}
}

// A result is a row once it was measured.
type result struct {
	Row      string    `json:"row"`
	Work     string    `json:"work"`
	Growth   *growth   `json:"growth,omitempty"`
	Figures  []*figure `json:"figures"`
	Verdicts []verdict `json:"verdicts"`
}

// A figure is what one contestant took of one unit. Ratio is what the library
// took of it in the same round; of growth, what this size took of what the
// smallest did. It is nil where there is nothing to compare with.
type figure struct {
	Contestant string    `json:"contestant"`
	Unit       string    `json:"unit"`
	Spread     spread    `json:"spread"`
	Ratio      *spread   `json:"ratio,omitempty"`
	Rounds     []float64 `json:"rounds"`
}

// add takes the samples of one round in, by contestant.
func (r *result) add(samples map[string]sample) {
	for _, contestant := range slices.Sorted(maps.Keys(samples)) {
		for _, unit := range slices.Sorted(maps.Keys(samples[contestant])) {
			f := r.figure(contestant, unit)
			if f == nil {
				f = &figure{Contestant: contestant, Unit: unit}
				r.Figures = append(r.Figures, f)
			}
			f.Rounds = append(f.Rounds, samples[contestant][unit])
		}
	}
}

func (r *result) figure(contestant, unit string) *figure {
	for _, f := range r.Figures {
		if f.Contestant == contestant && f.Unit == unit {
			return f
		}
	}
	return nil
}

// paired is the spread of a[i]/b[i], if b allows it: what happens to a machine
// during a round happens to both.
func paired(a, b []float64) (spread, bool) {
	if slices.Contains(b, 0) {
		return spread{}, false
	}
	ratios := make([]float64, len(a))
	for i := range ratios {
		ratios[i] = a[i] / b[i]
	}
	return spreadOf(ratios), true
}
