package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/golang-lru/v2/expirable"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/benchmark/byhand"
	"github.com/carddata/carddata-go/internal/benchmark/process"
	"github.com/carddata/carddata-go/internal/benchmark/service"
)

var cacheRows = []row{
	{
		name: "cached-hit",
		work: "One of 1,000 cached results, read by goroutines on all cores. The peers return a pointer that all callers share; the library returns a copy that the caller may change.",
		open: openCachedHit,
		targets: []target{
			{unit: "allocs", bound: atMost(3)},
			{unit: "B", bound: atMost(1200)},
		},
	},
	{
		name: "range-find",
		work: "One of 400,000 ranges found.",
		open: func(e *environment) (round, error) {
			return testBenchmarks(e, "^BenchmarkRangeFind$", func(benchmark string) string {
				_, way, _ := strings.Cut(benchmark, "/")
				if way == "index" {
					return library
				}
				return way
			})
		},
		targets: []target{{unit: "ns", peer: "binary-search", bound: atMost(1. / 2)}},
	},
	{
		name: "cached-memory",
		work: "Memory of a cached card, of 40,000 that differ in range and are of some thousand issuers and products.",
		open: func(e *environment) (round, error) {
			size := 40_000
			if e.quick {
				size = 2_000
			}
			return inTurn([]contestant{
				e.working(library, process.Job{Work: "cached", Contestant: library, Size: size}),
				e.working("map of decoded structs", process.Job{Work: "cached", Size: size}),
			}), nil
		},
		targets: []target{{unit: "B", peer: "map of decoded structs", bound: atMost(1. / 4)}},
	},
}

func openCachedHit(*environment) (round, error) {
	const kept = 1000
	transport := &http.Client{Transport: &service.Service{}}
	client, err := bins.NewClient("https://bin.example", bins.StaticToken(token), bins.WithHTTPClient(transport))
	if err != nil {
		return nil, err
	}
	asked := service.Cards(0, kept)
	loader, err := bins.NewLoader(client, bins.LoaderOptions{Window: -1})
	if err != nil {
		return nil, err
	}
	load := func(card string) bool {
		r, err := loader.Load(context.Background(), card)
		return err == nil && r.Data != nil
	}
	for _, card := range asked {
		if !load(card) {
			return nil, fmt.Errorf("%s has no result", card)
		}
	}
	decoded := map[string]*byhand.Card{}
	lru := expirable.NewLRU[string, *byhand.Card](kept, nil, time.Hour)
	resp, err := byhand.New("https://bin.example", token, transport).Lookup(context.Background(), asked[:bins.MaxCards])
	if err != nil {
		return nil, err
	}
	for i, card := range asked {
		decoded[card] = resp.Cards[i%bins.MaxCards].Data.Card
		lru.Add(card, decoded[card])
	}
	var mu sync.RWMutex
	hit := func(name string, get func(card string) bool) contestant {
		return timed(name, 1, func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if !get(asked[i%kept]) {
						b.Error("not cached")
						return
					}
				}
			})
		})
	}
	return inTurn([]contestant{
		hit(library, load),
		hit("map and RWMutex of decoded structs", func(card string) bool {
			mu.RLock()
			defer mu.RUnlock()
			return decoded[card] != nil
		}),
		hit("golang-lru/v2/expirable of decoded structs", func(card string) bool {
			_, ok := lru.Get(card)
			return ok
		}),
	}), nil
}
