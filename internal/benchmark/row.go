package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/carddata/carddata-go/internal/benchmark/process"
)

// A row is one line of the report: contestants that do the same work.
type row struct {
	name    string
	work    string
	open    func(e *environment) (round, error)
	targets []target
	growth  func(e *environment) *growth // contestants are sizes of the same work
}

// A round measures every contestant once. Its number turns the order, so that
// none always comes first.
type round func(number int) (map[string]sample, error)

// A sample is what one contestant took in one round, by unit.
type sample = process.Sample

type contestant struct {
	name string
	run  func() (sample, error)
}

// inTurn measures contestants one after the other.
func inTurn(all []contestant) round {
	return func(number int) (map[string]sample, error) {
		samples := map[string]sample{}
		for i := range all {
			c := all[(i+number)%len(all)]
			s, err := c.run()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			samples[c.name] = s
		}
		return samples, nil
	}
}

// timed is a contestant that does its work for a while; units is how much of it
// one iteration does.
func timed(name string, units int, work func(b *testing.B)) contestant {
	return contestant{name, func() (sample, error) {
		failed := true
		r := testing.Benchmark(func(b *testing.B) {
			defer func() { failed = b.Failed() }()
			b.ReportAllocs()
			work(b)
		})
		if failed || r.N == 0 {
			return nil, errors.New("the work failed")
		}
		per := float64(r.N * units)
		return sample{
			"ns":     float64(r.T.Nanoseconds()) / per,
			"allocs": float64(r.MemAllocs) / per,
			"B":      float64(r.MemBytes) / per,
		}, nil
	}}
}

// working is a contestant that works in a process of its own, so that its memory
// can be told.
func (e *environment) working(name string, job process.Job) contestant {
	return contestant{name, func() (sample, error) { return process.Run(e.worker, job) }}
}

// measure runs the rounds of a row, and judges it by its targets.
func (r row) measure(e *environment, rounds int) (_ *result, err error) {
	defer func() { err = errors.Join(err, e.close()) }()
	measure, err := r.open(e)
	if err != nil {
		return nil, err
	}
	m := &result{Row: r.name, Work: r.work}
	for i := range rounds {
		samples, err := measure(i)
		if err != nil {
			return nil, err
		}
		m.add(samples)
	}
	for _, f := range m.Figures {
		if len(f.Rounds) != rounds {
			return nil, fmt.Errorf("%s of %s was measured in %d of %d rounds", f.Unit, f.Contestant, len(f.Rounds), rounds)
		}
		f.Spread = spreadOf(f.Rounds)
	}
	targets := r.targets
	if r.growth != nil {
		m.Growth = r.growth(e)
		targets = append(m.Growth.targets(), targets...)
	}
	m.compare()
	for _, t := range targets {
		m.Verdicts = append(m.Verdicts, t.verdicts(m)...)
	}
	return m, nil
}

// compare sets the figures' ratios.
func (m *result) compare() {
	for _, f := range m.Figures {
		of, base := m.figure(library, f.Unit), f
		if m.Growth != nil {
			of, base = f, m.figure(m.Growth.smallest(f.Contestant), f.Unit)
		}
		if of == nil || of == base {
			continue
		}
		if ratio, ok := paired(of.Rounds, base.Rounds); ok {
			f.Ratio = &ratio
		}
	}
}
