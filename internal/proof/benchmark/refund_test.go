package benchmark

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carddata/carddata-go/refunds"
)

const account = "account-1"

// A refundClient submits refunds over TLS 1.3 to a service that is a round trip away.
type refundClient struct {
	name      string
	submit    func(context.Context, *refunds.Refund) error
	submitAll func(n, inFlight int) error
}

// refundClients returns new clients, without a connection. Kept connections can deliver the
// response of another refund; new ones cannot.
func refundClients(b *testing.B) []refundClient {
	own, err := refunds.NewClient(local.Distant, refunds.WithTokenSource(refunds.StaticToken(token)))
	if err != nil {
		b.Fatal(err)
	}
	library := refundClient{
		"carddata",
		func(ctx context.Context, refund *refunds.Refund) error {
			_, err := own.Submit(ctx, account, refund)
			return err
		},
		func(n, inFlight int) error {
			for s, err := range own.SubmitAll(context.Background(), table(n), refunds.BulkOptions{Concurrency: inFlight}) {
				if err != nil {
					return err
				}
				if s.Err != nil {
					return s.Err
				}
			}
			return nil
		},
	}
	fresh := http.DefaultTransport.(*http.Transport).Clone()
	fresh.DisableKeepAlives = true
	kept := http.DefaultTransport.(*http.Transport).Clone()
	kept.MaxIdleConns, kept.MaxIdleConnsPerHost = 0, 1024
	return []refundClient{library, refundsByHand("net-http+new", fresh), refundsByHand("net-http+kept", kept)}
}

func refundsByHand(name string, transport *http.Transport) refundClient {
	c := newClient(local.Distant, token, &http.Client{Transport: transport})
	submit := func(ctx context.Context, refund *refunds.Refund) error {
		var receipt struct {
			Status string `json:"status"`
		}
		return c.post(ctx, "/v1/"+account+"/refunds", refund, &receipt)
	}
	return refundClient{name, submit, func(n, inFlight int) error {
		var group errgroup.Group
		group.SetLimit(inFlight)
		for item := range table(n) {
			group.Go(func() error { return submit(context.Background(), item.Refund) })
		}
		return group.Wait()
	}}
}

func table(n int) func(yield func(refunds.Item) bool) {
	return func(yield func(refunds.Item) bool) {
		for i := range n {
			if !yield(refunds.Item{AccountID: account, Refund: refund(i)}) {
				return
			}
		}
	}
}

func refund(i int) *refunds.Refund {
	return &refunds.Refund{
		RefundID: fmt.Sprint("refund-", i), Amount: new(int64(10150)), Currency: "USD", Created: "2026-11-21T10:00:00Z",
		TransactionID: "transaction-1", TransactionOrderID: "order-1",
		RefundResponse: refunds.RefundResponse{Status: "approved", ProcessorResponseCode: "00", Reason: "returned goods"},
		AdditionalData: refunds.AdditionalData{MerchantAccountID: "merchant-1", OrderID: "order-1", Metadata: map[string]any{"ticket": "1234"}},
	}
}

// Submit: one refund after the other, with a gap between them. sec/op is the median of a
// refund, without the gap.
func BenchmarkSubmit(b *testing.B) {
	for _, series := range []struct {
		gap time.Duration
		n   int
	}{{0, 60}, {3 * time.Second, 4}} {
		n := perShort(series.n, 2)
		for _, c := range refundClients(b) {
			b.Run(fmt.Sprintf("gap=%v/client=%s", series.gap, c.name), func(b *testing.B) {
				var took []time.Duration
				for b.Loop() {
					for i := range n {
						began := time.Now()
						if err := c.submit(b.Context(), refund(i)); err != nil {
							b.Fatal(err)
						}
						took = append(took, time.Since(began))
						if !testing.Short() {
							time.Sleep(series.gap)
						}
					}
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "ns/op")
			})
		}
	}
}

// SubmitAll: beside an errgroup over single refunds.
func BenchmarkSubmitAll(b *testing.B) {
	for _, inFlight := range []int{8, 64} {
		n := perShort(60*inFlight, inFlight)
		for _, c := range refundClients(b) {
			b.Run(fmt.Sprintf("inflight=%d/client=%s", inFlight, c.name), func(b *testing.B) {
				for b.Loop() {
					if err := c.submitAll(n, inFlight); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "refunds/s")
			})
		}
	}
}
