package binstest_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/bins/binstest"
)

func ExampleServer() {
	fake := binstest.NewServer(nil) // in a test: binstest.NewServer(t)
	defer fake.Close()
	fake.SetResult("400000", bins.Result{BIN: "400000", Error: "blocked"})

	client := fake.Client() // or your service, made with fake.HTTPClient() or fake.URL()
	resp, err := client.Lookup(context.Background(), &bins.LookupRequest{Cards: bins.Cards("45717360", "400000", "999999")})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, result := range resp.Cards {
		if card, err := result.Card(); err != nil {
			fmt.Println(result.BIN, result.Error)
		} else {
			fmt.Println(result.BIN, card.CardBrand, card.Country.Alpha2)
		}
	}
	for _, request := range fake.Requests() {
		fmt.Println(request.Method, request.Path, request.Status)
	}
	// Output:
	// 45717360 VISA DK
	// 400000 blocked
	// 999999 unknown bin
	// POST /bins/multiple 200
}

// One card of a batch is refused whenever it is asked for. LookupAll finds out which.
func ExampleServer_ScriptFor() {
	fake := binstest.NewServer(nil)
	defer fake.Close()
	fake.ScriptFor("400000", binstest.Fault{Status: 400})

	cards := slices.Values([]string{"45717360", "400000", "555555"})
	for item, err := range fake.Client().LookupAll(context.Background(), cards, bins.BulkOptions{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Index, item.Err == nil)
	}
	// Output:
	// 0 true
	// 1 false
	// 2 true
}
