package bins_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/jarcoal/httpmock"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/bins/binstest"
)

// Three cards in one request. One is known, one is unknown, and the service says less
// about the third.
func ExampleClient_Lookup() {
	fake := binstest.Start() // stands in for the service
	defer fake.Close()
	less := &bins.Card{CardBrand: "VISA", Country: bins.Country{Alpha2: "US"}}
	fake.SetResult("411111", bins.Result{BIN: "411111", Data: &bins.Data{Card: less}})

	client, err := bins.NewClient(fake.URL(), bins.StaticToken("my-api-key")) // your {bin_url} and API key
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := client.Lookup(context.Background(), &bins.LookupRequest{
		Cards: bins.Cards("45717360", "999999", "411111"),
	})
	if err != nil {
		fmt.Println(err) // the call failed; errors.Is tells why
		return
	}
	for _, result := range resp.Cards {
		bin := bins.NewIdentifier(result.BIN) // masks a card number
		card, err := result.Card()
		if err != nil {
			fmt.Println(bin, "is not known")
			continue
		}
		fmt.Printf("%s %s %s, digits: %d, prepaid: %s\n",
			bin, card.CardBrand, card.Country.Alpha2, card.Number.Length.Or(0), card.Prepaid)
	}
	// Output:
	// 45717360 VISA DK, digits: 16, prepaid: false
	// 999999 is not known
	// 411111 VISA US, digits: 0, prepaid: not stated
}

// An item may hold a card, an error, both or neither. The card is safe to read
// whenever it is not nil.
func ExampleResult_Card() {
	known := &bins.Data{Card: &bins.Card{CardBrand: "VISA"}}
	for _, result := range []bins.Result{
		{BIN: "45717360", Data: known},
		{BIN: "999999", Error: "unknown bin"},
		{BIN: "411111", Data: known, Error: "data is a week old"},
		{BIN: "424242"},
	} {
		bin := bins.NewIdentifier(result.BIN) // masks a card number
		card, err := result.Card()
		switch {
		case err == nil:
			fmt.Println(bin, card.CardBrand)
		case card != nil:
			fmt.Println(bin, card.CardBrand, "but", err)
		default:
			fmt.Println(bin, err)
		}
	}
	// Output:
	// 45717360 VISA
	// 999999 bins: the item holds an error
	// 411111 VISA but bins: the item holds an error
	// 424242 bins: the item holds neither a card nor an error
}

// Any http.RoundTripper can carry the requests. Here httpmock plays a service that is
// down at first, for a test of the caller's own code.
func ExampleWithHTTPClient() {
	service := httpmock.NewMockTransport()
	service.RegisterResponder("POST", "https://bin.example.com/bins/multiple",
		httpmock.NewStringResponder(503, "").
			Then(httpmock.NewStringResponder(200, `{"cards":[{"bin":"45717360","data":{"card":{"type":"debit"}}}]}`)))

	client, err := bins.NewClient("https://bin.example.com", bins.StaticToken("my-api-key"),
		bins.WithHTTPClient(&http.Client{Transport: service}),
		bins.WithRetryWait(0, 0)) // a test need not wait
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := client.Lookup(context.Background(), &bins.LookupRequest{Cards: bins.Cards("45717360")})
	if err != nil {
		fmt.Println(err)
		return
	}
	card, err := resp.Cards[0].Card()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(card.Type, "after", service.GetTotalCallCount(), "requests")
	// Output:
	// debit after 2 requests
}

// A key that is read for each request can be rotated without a restart. A key that has
// just been replaced is refused once, and the request is sent again with the new one.
func ExampleTokenFunc() {
	fake := binstest.Start() // stands in for the service
	defer fake.Close()

	key := "key-1"
	source := bins.TokenFunc(func(context.Context) (string, error) {
		current := key // in production: read a file or a vault
		key = "key-2"  // and somebody replaces the key just after it was read
		return current, nil
	})
	fake.RevokeToken("key-1")
	client, err := bins.NewClient(fake.URL(), source)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Lookup(context.Background(), &bins.LookupRequest{Cards: bins.Cards("45717360")})
	for _, request := range fake.Requests() {
		fmt.Println("status:", request.Status)
	}
	fmt.Println("error:", err)
	// Output:
	// status: 401
	// status: 200
	// error: <nil>
}

// Which failures are worth another call, and under which name they are counted. The client
// has made its own retries by then.
func ExampleError_Retryable() {
	service := httpmock.NewMockTransport() // stands in for the service
	client, err := bins.NewClient("https://bin.example.com", bins.StaticToken("key"),
		bins.WithHTTPClient(&http.Client{Transport: service}), bins.WithMaxRetries(0))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, status := range []int{429, 503, 403} {
		service.RegisterResponder("POST", "https://bin.example.com/bins/multiple", httpmock.NewStringResponder(status, ""))
		_, err := client.Lookup(context.Background(), &bins.LookupRequest{Cards: bins.Cards("45717360")})
		failure, _ := errors.AsType[*bins.Error](err)
		if failure.Retryable() {
			fmt.Println(failure.Condition(), "- try again later")
		} else {
			fmt.Println(failure.Condition(), "- something must change first")
		}
	}
	// Output:
	// rate_limited - try again later
	// server_error - try again later
	// forbidden - something must change first
}
