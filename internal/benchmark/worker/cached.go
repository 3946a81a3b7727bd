package main

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"runtime"
	"slices"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/benchmark/byhand"
	"github.com/carddata/carddata-go/internal/benchmark/process"
	"github.com/carddata/carddata-go/internal/benchmark/service"
)

// cached keeps the responses to distinct cards, and tells how much memory each
// takes.
func cached(job process.Job) (process.Sample, error) {
	client := &http.Client{Transport: &service.Service{Response: service.Synthetic}}
	own, err := newClient(base, client)
	if err != nil {
		return nil, err
	}
	hand := byhand.New(base, token, client)
	kept := map[string]*byhand.Card{}
	cache := bins.NewMemoryCache(bins.CacheOptions{Entries: job.Size})
	fill := func(first, n int) error {
		if job.Contestant == process.Library {
			for _, err := range own.LookupAll(context.Background(), bankCards(first, n), bins.BulkOptions{Memory: cache}) {
				if err != nil {
					return err
				}
			}
			return nil
		}
		for batch := range slices.Chunk(slices.Collect(bankCards(first, n)), bins.MaxCards) {
			resp, err := hand.Lookup(context.Background(), batch)
			if err != nil {
				return err
			}
			for i, item := range resp.Cards {
				card := *item.Data.Card // or one card would keep the other 49
				kept[batch[i]] = &card
			}
		}
		return nil
	}
	// What is made once is no memory of a card.
	warm := job.Size / 10
	if err := fill(0, warm); err != nil {
		return nil, err
	}
	before := heapInUse()
	if err := fill(warm, job.Size-warm); err != nil {
		return nil, err
	}
	after := heapInUse()
	if n := cache.Len() + len(kept); n != job.Size {
		return nil, fmt.Errorf("%d cards kept, not %d", n, job.Size)
	}
	return process.Sample{"B": float64(after-before) / float64(job.Size-warm)}, nil
}

// bankCards yields BINs of 8 digits that are spread over ranges and banks.
func bankCards(first, n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := first; i < first+n; i++ {
			// A prime step goes round all of them.
			if !yield(fmt.Sprintf("4%07d", i*7_368_787%10_000_000)) {
				return
			}
		}
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // the first one may only have begun to free
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
