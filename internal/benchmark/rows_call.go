package main

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/benchmark/byhand"
	"github.com/carddata/carddata-go/internal/benchmark/process"
	"github.com/carddata/carddata-go/internal/benchmark/service"
	"github.com/carddata/carddata-go/refunds"
)

const byHand = "net/http + encoding/json"

var callRows = []row{
	{
		name: "lookup",
		work: "A lookup of 50 cards over a RoundTripper in memory. The response has about 115 KB.",
		open: func(*environment) (round, error) { return lookups(&service.Service{}, 50) },
		targets: []target{
			{unit: "ns", peer: byHand, bound: atMost(1. / 5)},
			{unit: "allocs", peer: byHand, bound: atMost(1. / 8)},
		},
	},
	{
		name: "decode",
		work: "Decoding such a response, without the call: with its members in the documented order, in alphabetical order, and indented.",
		open: openDecode,
		targets: []target{
			{unit: "ns", of: library + ", documented", peer: "encoding/json, documented", bound: atMost(1. / 6)},
			{unit: "ns", of: library + ", alphabetical", peer: "encoding/json, alphabetical", bound: atMost(1. / 3)},
			{unit: "ns", of: library + ", indented", peer: "encoding/json, indented", bound: atMost(1. / 3)},
			{unit: "ns", of: library + ", documented", peer: "encoding/json/v2, documented", bound: atMost(0.4)},
			{unit: "ns", of: library + ", alphabetical", peer: "encoding/json/v2, alphabetical", bound: atMost(1. / 2)},
			{unit: "ns", of: library + ", indented", peer: "encoding/json/v2, indented", bound: atMost(0.75)},
			{unit: "ns", of: library + ", documented", peer: "json.Valid, documented", bound: atMost(1)},
		},
	},
	{
		name: "tiny-in-memory",
		work: "A lookup of one card over a RoundTripper in memory, with a response of 60 bytes: what a call costs besides its content.",
		open: func(*environment) (round, error) { return lookups(&service.Service{Response: service.Tiny}, 1) },
		targets: []target{
			{unit: "ns", peer: byHand, bound: atMost(2)},
		},
	},
	{
		name: "tiny-over-loopback",
		work: "A lookup of one card over a kept loopback connection, with a response of 60 bytes, each stack with its own transport.",
		open: func(e *environment) (round, error) {
			server, err := process.Serve(e.worker, process.ServerOptions{Tiny: true})
			if err != nil {
				return nil, err
			}
			e.onClose(server.Close)
			return lookupsOver(server.URL, nil, 1)
		},
		targets: []target{
			{unit: "ns", peer: byHand, bound: atMost(1.25)},
			{unit: "ns", peer: everyClient, bound: atMost(1.25)},
			{unit: "allocs", peer: byHand, bound: atMost(4. / 3)},
		},
	},
	{
		name: "submit",
		work: "The submission of a refund over a new loopback connection each, as by default.",
		open: func(e *environment) (round, error) {
			return openSubmit(e, &http.Transport{DisableKeepAlives: true})
		},
		targets: []target{
			{unit: "ns", peer: byHand, bound: atMost(1.10)},
		},
	},
	{
		name: "submit-reused",
		work: "The submission of a refund over a kept loopback connection, with WithConnectionReuse.",
		open: func(e *environment) (round, error) {
			return openSubmit(e, &http.Transport{}, refunds.WithConnectionReuse(2*time.Second))
		},
		targets: []target{
			{unit: "ns", peer: byHand, bound: atMost(1.25)},
		},
	},
}

func lookups(s *service.Service, cards int) (round, error) {
	return lookupsOver("https://bin.example", s, cards)
}

func lookupsOver(base string, transport http.RoundTripper, cards int) (round, error) {
	asked := service.Cards(0, cards)
	var all []contestant
	for _, s := range stacks {
		look, err := s.open(base, transport)
		if err != nil {
			return nil, err
		}
		// A first call makes what is made once.
		if _, err := look(context.Background(), asked); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		all = append(all, timed(s.name, 1, func(b *testing.B) {
			for b.Loop() {
				withDeadline(b, func(ctx context.Context) error {
					_, err := look(ctx, asked)
					return err
				})
			}
		}))
	}
	return inTurn(all), nil
}

// withDeadline does a call as everyone should.
func withDeadline(b *testing.B, call func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := call(ctx); err != nil {
		b.Fatal(err)
	}
}

// openSubmit compares the library with stacks over a transport that treats its
// connections in the same way.
func openSubmit(e *environment, transport *http.Transport, opts ...refunds.Option) (round, error) {
	server, err := process.Serve(e.worker, process.ServerOptions{})
	if err != nil {
		return nil, err
	}
	e.onClose(server.Close)
	client, err := refunds.NewClient(server.URL, opts...)
	if err != nil {
		return nil, err
	}
	refund := refunds.Refund{
		RefundID: "refund-1", Amount: new(int64(10150)), Currency: "USD", Created: "2026-11-21T10:00:00Z",
		TransactionID: "transaction-1", TransactionOrderID: "order-1",
		RefundResponse: refunds.RefundResponse{Status: "approved", ProcessorResponseCode: "00", Reason: "returned goods"},
		AdditionalData: refunds.AdditionalData{MerchantAccountID: "merchant-1", OrderID: "order-1", Metadata: map[string]any{"ticket": "1234"}},
	}
	const account = "account-1"
	submit := map[string]func(context.Context) error{
		library: func(ctx context.Context) error {
			_, err := client.Submit(ctx, account, &refund)
			return err
		},
		byHand:             submitByHand(byhand.New(server.URL, "", &http.Client{Transport: transport}), account, &refund),
		"go-retryablehttp": submitByHand(byhand.NewRetryable(server.URL, "", &http.Client{Transport: transport}), account, &refund),
	}
	var all []contestant
	for _, name := range []string{library, byHand, "go-retryablehttp"} {
		if err := submit[name](context.Background()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, timed(name, 1, func(b *testing.B) {
			for b.Loop() {
				withDeadline(b, submit[name])
			}
		}))
	}
	return inTurn(all), nil
}

// submitByHand sends the same members from the same struct.
func submitByHand(client *byhand.Client, account string, refund *refunds.Refund) func(context.Context) error {
	return func(ctx context.Context) error {
		var receipt struct {
			Status string `json:"status"`
		}
		return client.Post(ctx, "/v1/"+account+"/refunds", refund, &receipt)
	}
}
