package benchmark

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carddata/carddata-go/bins"
)

const latency = 20 * time.Millisecond

// A bulkLookup looks any number of cards up, and returns how many it found.
type bulkLookup func(cards iter.Seq[string]) (int64, error)

// LookupAll: cards that all differ, at a service in memory that takes 20 ms for each request.
// The latency bounds what is possible.
func BenchmarkLookupAll(b *testing.B) {
	transport := service{latency}
	for _, inFlight := range []int{32, 128} {
		own, err := bins.NewClient("https://bins.example", bins.StaticToken(token), bins.WithHTTPClient(&http.Client{Transport: transport}))
		if err != nil {
			b.Fatal(err)
		}
		bulk := []struct {
			name string
			look bulkLookup
		}{{"LookupAll", lookupAll(own, inFlight)}}
		for _, c := range lookupClients[:2] {
			look, err := c.open("https://bins.example", transport)
			if err != nil {
				b.Fatal(err)
			}
			bulk = append(bulk, struct {
				name string
				look bulkLookup
			}{"errgroup+" + c.name, errgroupOver(look, inFlight)})
		}
		bound := float64(inFlight*bins.MaxCards) / latency.Seconds()
		n := perShort(int(bound), inFlight*bins.MaxCards)
		for _, c := range bulk {
			b.Run(fmt.Sprintf("inflight=%d/client=%s", inFlight, c.name), func(b *testing.B) {
				for b.Loop() {
					if found, err := c.look(allCards(n)); err != nil || found != int64(n) {
						b.Fatalf("%d of %d cards: %v", found, n, err)
					}
				}
				reached := float64(n*b.N) / b.Elapsed().Seconds()
				b.ReportMetric(reached, "cards/s")
				b.ReportMetric(100*reached/bound, "%bound")
			})
		}
	}
}

func allCards(n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range n {
			if !yield(card(i)) {
				return
			}
		}
	}
}

func lookupAll(client *bins.Client, inFlight int) bulkLookup {
	return func(cards iter.Seq[string]) (found int64, _ error) {
		for r, err := range client.LookupAll(context.Background(), cards, bins.BulkOptions{Concurrency: inFlight}) {
			if err != nil {
				return found, err
			}
			if r.Err == nil && r.Result.Data != nil {
				found++
			}
		}
		return found, nil
	}
}

// errgroupOver is the loop that one writes over single lookups. It keeps no order and no
// responses.
func errgroupOver(look lookup, inFlight int) bulkLookup {
	return func(cards iter.Seq[string]) (int64, error) {
		group, ctx := errgroup.WithContext(context.Background())
		group.SetLimit(inFlight)
		var found atomic.Int64
		var batch []string
		for card := range cards {
			if batch = append(batch, card); len(batch) < bins.MaxCards {
				continue
			}
			full := batch
			batch = make([]string, 0, bins.MaxCards)
			group.Go(func() error {
				n, err := look(ctx, full)
				found.Add(int64(n))
				return err
			})
		}
		err := group.Wait()
		return found.Load(), err
	}
}
