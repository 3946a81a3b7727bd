package bins_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/bins/binstest"
)

// Any number of cards, from anything that yields them. Each is sent once.
func ExampleClient_LookupAll() {
	fake := binstest.Start() // stands in for the service
	defer fake.Close()
	client := fake.Client()

	cards := slices.Values([]string{"45717360", "411111", "45717360", "999999", "411111"})
	for result, err := range client.LookupAll(context.Background(), cards, bins.BulkOptions{}) {
		if err != nil {
			fmt.Println(result.Index, err) // this card has no response; an Index of -1 ended the loop
			continue
		}
		card, err := result.Result.Card()
		if err != nil {
			fmt.Println(result.Index, result.Input, "is not known")
			continue
		}
		fmt.Println(result.Index, result.Input, card.CardBrand, card.Country.Alpha2)
	}
	fmt.Println("cards sent:", len(fake.Cards()))
	// Output:
	// 0 45717360 VISA DK
	// 1 411111 VISA US
	// 2 45717360 VISA DK
	// 3 999999 is not known
	// 4 411111 VISA US
	// cards sent: 3
}

// Lookups from many goroutines share a request, and cards of one BIN share a result.
func ExampleLoader() {
	fake := binstest.Start() // stands in for the service
	defer fake.Close()
	loader, err := bins.NewLoader(fake.Client(), bins.LoaderOptions{PrefixLength: 8})
	if err != nil {
		fmt.Println(err)
		return
	}

	var checkouts sync.WaitGroup
	for range 40 {
		checkouts.Go(func() {
			result, err := loader.Load(context.Background(), "4571736012345678")
			if err != nil || result.Data == nil {
				fmt.Println(result, err)
			}
		})
	}
	checkouts.Wait()
	result, err := loader.Load(context.Background(), "4571736087654321") // known by now
	if err != nil {
		fmt.Println(err)
		return
	}
	card, err := result.Card()
	if err != nil { // an unknown card, for example
		fmt.Println(err)
		return
	}
	fmt.Println(bins.NewIdentifier(result.BIN), card.Country.Name, "requests:", len(fake.Requests()))
	// Output: 45717360 Denmark requests: 1
}

// A queue has no end: ReadAhead yields results while it waits for the next card, and
// GiveUpAfter below zero keeps an outage from ending the lookup.
func ExampleBulkOptions_readAhead() {
	fake := binstest.Start() // stands in for the service
	defer fake.Close()

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	queue := make(chan string, 1)
	queue <- "45717360"
	cards := func(yield func(string) bool) {
		for {
			select {
			case card := <-queue:
				if !yield(card) {
					return
				}
			case <-ctx.Done(): // it must end with the context
				return
			}
		}
	}
	for r, err := range fake.Client().LookupAll(ctx, cards, bins.BulkOptions{ReadAhead: true, GiveUpAfter: -1}) {
		if r.Index < 0 {
			fmt.Println("stopped:", errors.Is(err, context.Canceled))
			continue
		}
		if err != nil { // its request failed: the service, or the way to it
			fmt.Println(r.Input, err)
			continue
		}
		if card, err := r.Result.Card(); err != nil {
			fmt.Println(r.Input, err)
		} else {
			fmt.Println(r.Input, card.CardBrand)
		}
		stop() // here, after the first
	}
	// Output:
	// 45717360 VISA
	// stopped: true
}
