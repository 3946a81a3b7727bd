// Redis compares ways to keep many replicas within one quota.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/engines/redis/internal/redisserver"
	"github.com/carddata/carddata-go/examples/engines/redis/quota"
	"github.com/carddata/carddata-go/internal/sandbox"
)

const (
	// The service allows quotaLimit requests a second, quotaBurst of them at once, and takes
	// latency for each.
	quotaLimit = 200
	quotaBurst = 20
	latency    = 50 * time.Millisecond
	// The limiters use a small burst, because the network brings requests closer together.
	limiterBurst = 2
)

// callers is the number of goroutines of each replica. Load is never even.
var callers = []int{40, 2, 1, 1}

// A strategy makes the limiter of a replica.
type strategy struct {
	name    string
	limiter func(client redis.UniversalClient) (bins.Limiter, error)
}

var strategies = []strategy{
	{"each the whole quota", func(redis.UniversalClient) (bins.Limiter, error) {
		return rate.NewLimiter(quotaLimit, limiterBurst), nil
	}},
	{"each its part of the quota", func(redis.UniversalClient) (bins.Limiter, error) {
		return rate.NewLimiter(quotaLimit/rate.Limit(len(callers)), limiterBurst), nil
	}},
	{"shared through Redis", func(client redis.UniversalClient) (bins.Limiter, error) {
		return quota.New(client, "carddata-example", quotaLimit, time.Second, limiterBurst)
	}},
}

func main() {
	log.SetFlags(0)
	d := flag.Duration("for", 5*time.Second, "how long each limiter is tried")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	url := os.Getenv("REDIS_URL")
	if url == "" {
		server, err := redisserver.Start(ctx)
		if err != nil {
			log.Fatal(err)
		}
		defer server.Close()
		url = server.URL
	}
	if err := compare(ctx, os.Stdout, url, *d); err != nil {
		log.Print(err)
	}
}

// A result is the measurement of a strategy.
type result struct {
	requests, refused int     // all that arrived, and those refused with 429
	use               float64 // accepted requests in percent of the quota
	failed            int     // lookups
}

func compare(ctx context.Context, w io.Writer, url string, d time.Duration) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "LIMITER\tREQUESTS\t429s\tOF THE QUOTA\tFAILED LOOKUPS")
	for _, s := range strategies {
		r, err := try(ctx, s, url, d)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%.0f %%\t%d\n", s.name, r.requests, r.refused, r.use, r.failed)
	}
	return table.Flush()
}

// try runs replicas with a strategy. They share nothing but the service and Redis.
func try(ctx context.Context, s strategy, url string, d time.Duration) (result, error) {
	var r result
	var mu sync.Mutex
	limit, engine := rate.NewLimiter(quotaLimit, quotaBurst), sandbox.New()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		accepted := limit.Allow()
		mu.Lock()
		r.requests++
		if !accepted {
			r.refused++
		}
		mu.Unlock()
		if !accepted { // like many services: in whole seconds, the same for all
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		time.Sleep(latency)
		engine.ServeHTTP(w, req)
	}))
	defer service.Close()
	trial, cancel := context.WithCancel(ctx)
	defer cancel()
	time.AfterFunc(d, cancel) // without a deadline: lookups would fail before it
	var running sync.WaitGroup
	for _, n := range callers {
		client, closeRedis, err := newReplica(s, service.URL, url)
		if err != nil {
			return r, err
		}
		defer closeRedis()
		for range n {
			running.Go(func() {
				for {
					_, err := client.Lookup(trial, &bins.LookupRequest{Cards: bins.Cards("411111")})
					if trial.Err() != nil {
						return
					}
					if err != nil {
						mu.Lock()
						r.failed++
						mu.Unlock()
					}
				}
			})
		}
	}
	running.Wait()
	r.use = 100 * float64(r.requests-r.refused) / (quotaLimit * d.Seconds())
	return r, ctx.Err()
}

// newReplica returns the client of a replica. Only the limiter depends on the strategy.
func newReplica(s strategy, service, url string) (*bins.Client, func() error, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, nil, errors.New("REDIS_URL is no URL of a Redis") // the error would quote it
	}
	o.ContextTimeoutEnabled = true
	shared := redis.NewClient(o)
	limiter, err := s.limiter(shared)
	if err != nil {
		return nil, nil, err
	}
	client, err := bins.NewClient(service, bins.StaticToken("sandbox"), bins.WithLimiter(limiter))
	return client, shared.Close, err
}
