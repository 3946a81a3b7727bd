package main

import (
	"context"
	"testing"

	"github.com/carddata/carddata-go/internal/benchmark/process"
	"github.com/carddata/carddata-go/internal/benchmark/service"
)

var growthRows = []row{
	{
		name:   "growth-items",
		work:   "Lookups of this many cards in memory; the time is for one card.",
		growth: func(*environment) *growth { return &itemGrowth },
		open:   openItemGrowth,
	},
	{
		name:   "growth-inputs",
		work:   "Bulk lookups of this many cards in memory, all different, 8 requests in flight; the time is for one card.",
		growth: inputGrowth,
		open: func(e *environment) (round, error) {
			g := inputGrowth(e)
			return sizedWork(e, g, func(size int) process.Job {
				return process.Job{Work: "growth", Contestant: lookupAll, Size: size, Repeat: max(1, g.Sizes[1]/size)}
			}), nil
		},
	},
	{
		name:   "growth-goroutines",
		work:   "Lookups of 50 cards in memory, by this many goroutines at once; the time is wall time for one lookup.",
		growth: goroutineGrowth,
		open: func(e *environment) (round, error) {
			return sizedWork(e, goroutineGrowth(e), func(size int) process.Job {
				repeat := 2000
				if e.quick {
					repeat = 100
				}
				return process.Job{Work: "goroutines", Contestant: "errgroup over " + library, Size: size, Repeat: repeat}
			}), nil
		},
	},
	{
		name:   "growth-bytes",
		work:   "The download of this much over the loopback into a file, until it is on the disk; the time is for one MiB.",
		growth: byteGrowth,
		open: func(e *environment) (round, error) {
			return sizedWork(e, byteGrowth(e), func(size int) process.Job {
				return process.Job{Work: "download", Contestant: library, Size: size, Repeat: max(1, 8/size)}
			}), nil
		},
	},
}

func byteGrowth(e *environment) *growth {
	g := &growth{Unit: "MiB", Series: []string{library}, Sizes: []int{1, 10, 100, 1024}, memory: 12}
	switch {
	case e.quick:
		g.Sizes = []int{1, 10}
	case e.full:
		g.Sizes = append(g.Sizes, 10*1024)
	}
	return g
}

var itemGrowth = growth{Unit: "items", Series: []string{library, byHand}, Sizes: []int{1, 10, 50}}

func openItemGrowth(*environment) (round, error) {
	var all []contestant
	for _, s := range stacks[:2] { // the library and what is written by hand
		look, err := s.open("https://bin.example", &service.Service{})
		if err != nil {
			return nil, err
		}
		for _, size := range itemGrowth.Sizes {
			asked := service.Cards(0, size)
			if _, err := look(context.Background(), asked); err != nil {
				return nil, err
			}
			all = append(all, timed(itemGrowth.contestant(s.name, size), size, func(b *testing.B) {
				for b.Loop() {
					withDeadline(b, func(ctx context.Context) error {
						_, err := look(ctx, asked)
						return err
					})
				}
			}))
		}
	}
	return inTurn(all), nil
}

func inputGrowth(e *environment) *growth {
	g := &growth{Unit: "inputs", Series: []string{lookupAll}, Sizes: []int{10_000, 100_000, 1_000_000}, memory: 50}
	switch {
	case e.quick:
		g.Sizes = []int{1_000, 10_000}
	case e.full:
		g.Sizes = append(g.Sizes, 10_000_000)
	}
	return g
}

func goroutineGrowth(*environment) *growth {
	return &growth{Unit: "goroutines", Series: []string{library}, Sizes: []int{1, 10, 100, 1000}}
}

// sizedWork measures the sizes of the only series in processes of their own.
func sizedWork(e *environment, g *growth, job func(size int) process.Job) round {
	var all []contestant
	for _, size := range g.Sizes {
		all = append(all, e.working(g.contestant(g.Series[0], size), job(size)))
	}
	return inTurn(all)
}
