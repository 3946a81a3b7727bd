package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/benchmark/process"
	"github.com/carddata/carddata-go/internal/benchmark/service"
)

// A record of arrivals is the service's own.
type record struct {
	mu    sync.Mutex
	times []time.Time
}

func (r *record) arrived() {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times = append(r.times, now)
}

// busiest is the most requests within any window of that length.
func (r *record) busiest(window time.Duration) int {
	most, from := 0, 0
	for to := range r.times {
		for r.times[to].Sub(r.times[from]) >= window {
			from++
		}
		most = max(most, to-from+1)
	}
	return most
}

// rate is that of the first nine tenths: the last may wait to be repeated, with
// nothing left to send meanwhile.
func (r *record) rate() float64 {
	busy := r.times[:max(2, 9*len(r.times)/10)]
	return float64(len(busy)-1) / busy[len(busy)-1].Sub(busy[0]).Seconds()
}

// margin is how far below what is allowed the limiter stays: with a burst of 1
// it is what a timer may be late by, over a second.
const margin = 0.995

// limit looks cards up for so many seconds under a limit.
func limit(job process.Job) (process.Sample, error) {
	var arrivals record
	s := &service.Service{Latency: 5 * time.Millisecond, Response: service.Short, Arrived: arrivals.arrived}
	if job.Faults {
		s.RefuseEvery = 5
	}
	client := &http.Client{Transport: s}
	pace := rate.Limit(margin * job.Limit)
	concurrency := 64 // more than wait for a response
	if job.Faults {
		concurrency = 512 // or for a retry
	}
	var look bulkLookup
	var err error
	if job.Contestant == process.LimitedBefore {
		look, err = limitedBefore(rate.NewLimiter(pace, 1), client, concurrency)
	} else {
		// In order, a request that is retried would soon hold up the others.
		o := bins.BulkOptions{Concurrency: concurrency, Unordered: job.Faults}
		look, err = newBulkLookup(job.Contestant, base, client, o, bins.WithRateLimit(pace, 1))
	}
	if err != nil {
		return nil, err
	}
	asked := int(job.Limit*job.Seconds) * bins.MaxCards
	found, err := look(cards(0, asked))
	if err != nil {
		return nil, err
	}
	return process.Sample{
		"% of the allowed rate":           100 * arrivals.rate() / job.Limit,
		"% of it in the busiest second":   100 * float64(arrivals.busiest(time.Second)) / job.Limit,
		"% of the cards without a result": 100 * float64(asked-found) / float64(asked),
	}, nil
}

// limitedBefore asks for leave once for each lookup, and not for what
// go-retryablehttp repeats.
func limitedBefore(limiter *rate.Limiter, client *http.Client, concurrency int) (bulkLookup, error) {
	look, err := newLookup("go-retryablehttp", base, client)
	return grouped(concurrency, func(ctx context.Context, cards []string) (int, error) {
		if err := limiter.Wait(ctx); err != nil {
			return 0, err
		}
		return look(ctx, cards)
	}), err
}
