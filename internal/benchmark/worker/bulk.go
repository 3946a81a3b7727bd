package main

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/benchmark/byhand"
	"github.com/carddata/carddata-go/internal/benchmark/process"
	"github.com/carddata/carddata-go/internal/benchmark/service"
)

const (
	base  = "https://bin.example"
	token = "key-1"
)

// cards yields n cards, of which the first is the i-th.
func cards(i, n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for j := range n {
			if !yield(service.Card(i + j)) {
				return
			}
		}
	}
}

// A lookup looks cards up, and tells how many items were found.
type lookup func(ctx context.Context, cards []string) (int, error)

// A bulkLookup does so with any number. What it does not count, it could not get.
type bulkLookup func(cards iter.Seq[string]) (int, error)

// newLookup returns a contestant's lookup over a client; nil is the library's
// own.
func newLookup(contestant, base string, client *http.Client, opts ...bins.Option) (lookup, error) {
	look := byhand.New(base, token, client).Lookup
	switch contestant {
	case process.Library:
		own, err := newClient(base, client, opts...)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, cards []string) (int, error) {
			resp, err := own.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards(cards...)})
			if err != nil {
				return 0, err
			}
			return len(resp.Cards), nil
		}, nil
	case "go-retryablehttp":
		look = byhand.NewRetryable(base, token, client).Lookup
	case "net/http + encoding/json":
	default:
		return nil, fmt.Errorf("there is no contestant %q", contestant)
	}
	return func(ctx context.Context, cards []string) (int, error) {
		resp, err := look(ctx, cards)
		if err != nil {
			return 0, err
		}
		return len(resp.Cards), nil
	}, nil
}

func newClient(base string, client *http.Client, opts ...bins.Option) (*bins.Client, error) {
	if client != nil {
		opts = append(opts, bins.WithHTTPClient(client))
	}
	return bins.NewClient(base, bins.StaticToken(token), opts...)
}

// newBulkLookup returns LookupAll, or else an errgroup over the contestant's
// lookups.
func newBulkLookup(contestant, base string, client *http.Client, o bins.BulkOptions, opts ...bins.Option) (bulkLookup, error) {
	if contestant != process.LookupAll {
		look, err := newLookup(strings.TrimPrefix(contestant, process.LoopOver), base, client, opts...)
		return grouped(o.Concurrency, look), err
	}
	own, err := newClient(base, client, opts...)
	if err != nil {
		return nil, err
	}
	return func(cards iter.Seq[string]) (found int, _ error) {
		for r, err := range own.LookupAll(context.Background(), cards, o) {
			if r.Index < 0 {
				return found, err
			}
			if err == nil && r.Result.Data != nil {
				found++
			}
		}
		return found, nil
	}, nil
}

// grouped is the loop that one would write over single lookups. It keeps no
// order and no responses, and goes on after a failure.
func grouped(concurrency int, look lookup) bulkLookup {
	return func(cards iter.Seq[string]) (int, error) {
		group, ctx := errgroup.WithContext(context.Background())
		group.SetLimit(concurrency)
		var found atomic.Int64
		send := func(batch []string) {
			group.Go(func() error {
				n, _ := look(ctx, batch)
				found.Add(int64(n))
				return nil
			})
		}
		var batch []string
		for card := range cards {
			if batch = append(batch, card); len(batch) == bins.MaxCards {
				send(batch)
				batch = make([]string, 0, bins.MaxCards)
			}
		}
		if len(batch) > 0 {
			send(batch)
		}
		err := group.Wait()
		return int(found.Load()), err
	}
}

func (look bulkLookup) all(first, n int) error {
	found, err := look(cards(first, n))
	if err == nil && found != n {
		err = fmt.Errorf("%d of %d cards found", found, n)
	}
	return err
}

const latency = 20 * time.Millisecond

// bulk looks up as many cards as the latency of 20 ms lets through in so many
// seconds, and tells which share of that bound it reached.
func bulk(job process.Job) (process.Sample, error) {
	look, err := newBulkLookup(job.Contestant, base, &http.Client{Transport: &service.Service{Latency: latency}}, bins.BulkOptions{Concurrency: job.Concurrency})
	if err != nil {
		return nil, err
	}
	requests := int(job.Seconds / latency.Seconds() * float64(job.Concurrency))
	began := time.Now()
	if err := look.all(0, requests*bins.MaxCards); err != nil {
		return nil, err
	}
	return process.Sample{"% of the bound": 100 * job.Seconds / time.Since(began).Seconds()}, nil
}

// growth looks up inputs as fast as it goes, Repeat times in all.
func growth(job process.Job) (process.Sample, error) {
	look, err := newBulkLookup(job.Contestant, base, &http.Client{Transport: &service.Service{}}, bins.BulkOptions{Concurrency: 8})
	if err != nil {
		return nil, err
	}
	const warm = 10_000
	if err := look.all(0, warm); err != nil {
		return nil, err
	}
	began := time.Now()
	for i := range job.Repeat {
		if err := look.all(warm+i*job.Size, job.Size); err != nil {
			return nil, err
		}
	}
	return process.Sample{"ns": float64(time.Since(began).Nanoseconds()) / float64(job.Repeat*job.Size)}, nil
}

// goroutines shares lookups of 50 cards between so many goroutines.
func goroutines(job process.Job) (process.Sample, error) {
	look, err := newBulkLookup(job.Contestant, base, &http.Client{Transport: &service.Service{}}, bins.BulkOptions{Concurrency: job.Size})
	if err != nil {
		return nil, err
	}
	if err := look.all(0, 10_000); err != nil {
		return nil, err
	}
	n := job.Repeat * bins.MaxCards
	began := time.Now()
	if err := look.all(0, n); err != nil {
		return nil, err
	}
	return process.Sample{"ns": float64(time.Since(began).Nanoseconds()) / float64(job.Repeat)}, nil
}
