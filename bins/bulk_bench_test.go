package bins_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// prepared answers requests of 50 consecutive cards after a latency, with bodies
// that were made before, so that the service costs next to nothing.
type prepared struct {
	latency time.Duration
	bodies  map[string][]byte // by first card
}

func prepare(latency time.Duration, requests int) *prepared {
	p := &prepared{latency, map[string][]byte{}}
	for r := range requests {
		var items []string
		for i := range bins.MaxCards {
			items = append(items, string(sandbox.SyntheticCard(benchCard(r*bins.MaxCards+i))))
		}
		p.bodies[benchCard(r*bins.MaxCards)] = []byte(`{"cards":[` + strings.Join(items, ",") + `]}`)
	}
	return p
}

func benchCard(i int) string { return fmt.Sprintf("4%09d", i*37) }

func (p *prepared) RoundTrip(r *http.Request) (*http.Response, error) {
	request, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body.Close()
	time.Sleep(p.latency)
	_, rest, _ := strings.Cut(string(request), `{"card":"`)
	first, _, _ := strings.Cut(rest, `"`)
	body, ok := p.bodies[first]
	if !ok {
		return nil, fmt.Errorf("a request begins in the middle")
	}
	return &http.Response{
		StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// BenchmarkBulk compares LookupAll with the loop that one would write by hand
// over Lookup, 32 requests in flight at a service that takes 20 ms for each.
// "%bound" is the share of what that latency allows at most.
func BenchmarkBulk(b *testing.B) {
	const latency, concurrency, requests = 20 * time.Millisecond, 32, 3200
	const cards = requests * bins.MaxCards
	p := prepare(latency, requests)
	client, err := bins.NewClient("https://bin.example", bins.StaticToken("k"), bins.WithHTTPClient(&http.Client{Transport: p}))
	if err != nil {
		b.Fatal(err)
	}
	run := func(b *testing.B, once func() int) {
		for b.Loop() {
			if n := once(); n != cards {
				b.Fatalf("%d results", n)
			}
		}
		bound := latency * requests / concurrency
		b.ReportMetric(100*bound.Seconds()*float64(b.N)/b.Elapsed().Seconds(), "%bound")
	}
	b.Run("LookupAll", func(b *testing.B) {
		run(b, func() (n int) {
			for r, err := range client.LookupAll(context.Background(), func(yield func(string) bool) {
				for i := range cards {
					if !yield(benchCard(i)) {
						return
					}
				}
			}, bins.BulkOptions{Concurrency: concurrency}) {
				if err != nil || r.Result.Data == nil {
					b.Fatal(r, err)
				}
				n++
			}
			return n
		})
	})
	b.Run("byhand", func(b *testing.B) {
		run(b, func() (n int) {
			var mu sync.Mutex
			var all sync.WaitGroup
			places := make(chan struct{}, concurrency)
			for r := range requests {
				batch := make([]string, bins.MaxCards)
				for i := range batch {
					batch[i] = benchCard(r*bins.MaxCards + i)
				}
				places <- struct{}{}
				all.Go(func() {
					defer func() { <-places }()
					resp, err := client.Lookup(context.Background(), &bins.LookupRequest{Cards: bins.Cards(batch...)})
					if err != nil {
						b.Error(err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					n += len(resp.Cards)
				})
			}
			all.Wait()
			return n
		})
	})
}
