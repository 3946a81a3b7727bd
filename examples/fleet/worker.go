package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/fleet/redisclient"
)

// A task is what a replica is told on its standard input.
type task struct {
	Strategy int    `json:"strategy"`
	Replicas int    `json:"replicas"`
	Callers  int    `json:"callers"` // goroutines that look cards up without a pause
	Service  string `json:"service"`
	Redis    string `json:"redis"`
}

// An outcome is what it writes to its standard output in the end.
type outcome struct {
	Lookups int             `json:"lookups"`
	Failed  int             `json:"failed"`
	Waits   []time.Duration `json:"waits"` // of each lookup
}

// work is the program as a replica. It says when it is ready, looks cards up from
// the next line of its input to the one after it, and ends with its input too:
// replicas must not outlive whoever started them.
func work(ctx context.Context, in io.Reader, out io.Writer) error {
	lines, reply := json.NewDecoder(in), json.NewEncoder(out)
	var t task
	if err := lines.Decode(&t); err != nil {
		return err
	}
	client, closeAll, err := t.client(ctx)
	if err != nil {
		return err
	}
	defer closeAll()
	var signal string
	if err := errors.Join(reply.Encode("ready"), lines.Decode(&signal)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		lines.Decode(&signal)
		cancel()
	}()
	return reply.Encode(t.run(ctx, client))
}

// client is all that differs between the strategies: the limiter.
func (t *task) client(ctx context.Context) (*bins.Client, func() error, error) {
	redisclient.Silence()
	shared, err := redisclient.New(t.Redis)
	if err != nil {
		return nil, nil, err
	}
	if err := shared.Ping(ctx).Err(); err != nil {
		return nil, nil, errors.Join(err, shared.Close())
	}
	limiter, err := strategies[t.Strategy].limiter(shared, t.Replicas)
	if err != nil {
		return nil, nil, errors.Join(err, shared.Close())
	}
	client, err := bins.NewClient(t.Service, bins.StaticToken("sandbox"),
		bins.WithLimiter(limiter),
		bins.WithTransport(func(base http.RoundTripper) http.RoundTripper { return stopwatch{base} }))
	if err != nil {
		return nil, nil, errors.Join(err, shared.Close())
	}
	return client, shared.Close, nil
}

func (t *task) run(ctx context.Context, client *bins.Client) *outcome {
	var mu sync.Mutex
	var o outcome
	var callers sync.WaitGroup
	for range t.Callers {
		callers.Go(func() {
			for {
				var wire atomic.Int64
				began := time.Now()
				_, err := client.Lookup(context.WithValue(ctx, wireTime{}, &wire), &bins.LookupRequest{Cards: bins.Cards("411111")})
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				o.Lookups++
				o.Waits = append(o.Waits, time.Since(began)-time.Duration(wire.Load()))
				if err != nil {
					o.Failed++
				}
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	return &o
}

// A stopwatch measures how long the attempts of a call are on the wire. The rest
// of the call is waiting: for the limiter, and for repetitions.
type stopwatch struct{ next http.RoundTripper }

type wireTime struct{}

func (s stopwatch) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	resp, err := s.next.RoundTrip(r)
	if wire, ok := r.Context().Value(wireTime{}).(*atomic.Int64); ok {
		wire.Add(int64(time.Since(began)))
	}
	return resp, err
}
