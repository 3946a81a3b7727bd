package bins_test

import (
	"context"
	"fmt"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/bins/binstest"
)

// Three cards in one request. One is known, one is unknown, and the service says less
// about the third.
func ExampleClient_Lookup() {
	fake := binstest.NewServer(nil) // stands in for the service
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
	// 999999 bins: the service sent an error for this card, Message has its text
	// 411111 VISA but bins: the service sent an error for this card, Message has its text
	// 424242 bins: the service sent neither a card nor an error for this card
}
