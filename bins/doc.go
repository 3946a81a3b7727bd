// Package bins looks up card metadata: brand, type, funding source, issuer, country,
// product, authentication requirement, interchange caps and feature flags.
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"log"
//		"os"
//		"time"
//
//		"github.com/carddata/carddata-go/bins"
//	)
//
//	func main() {
//		client, err := bins.NewClient("https://bin.example.com", bins.StaticToken(os.Getenv("CARDDATA_API_KEY")))
//		if err != nil {
//			log.Fatal(err)
//		}
//		loader, err := bins.NewLoader(client, bins.LoaderOptions{PrefixLength: 8}) // send eight digits of a card number
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer loader.Close()
//		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second) // the time that you have
//		defer cancel()
//		result, err := loader.Load(ctx, "4571736012345678")
//		if err != nil {
//			fmt.Println(err) // the service is slow or down: decide without the card
//		} else if card, err := result.Card(); err != nil {
//			fmt.Println(err) // the card is unknown
//		} else {
//			fmt.Println(card.CardBrand, card.Country.Alpha2, card.Prepaid.Or(false))
//		}
//	}
//
// What you decide:
//
//   - The call: [Loader.Load] takes one card at a time from many goroutines, as in a checkout.
//     [Client.LookupAll] takes any number of cards, in bounded memory. [Client.Lookup] sends one
//     request with up to 50 cards.
//   - How many digits of a card number are sent: PrefixLength of LookupAll and Loader. Caches keep
//     nothing under a full card number.
//   - How long a known card is served while the service is down: [CacheOptions.StaleFor].
//   - Whether processes share results: [Cache].
//   - What to do about an unknown card, which is no error of a call: [Result.Card].
//
// Errors, retries, load and outages, deadlines and defaults are chapters of
// [github.com/carddata/carddata-go].
//
// # Interface
//
//	POST {bin_url}/bins/multiple
//	Authorization: Bearer <API_KEY>
//	Content-Type: application/json
//
//	{"cards":[{"card":"45717360"}],"enhanced":true}
//
// A request carries 1 to 50 cards; enhanced may be left out. The response is
//
//	{"cards":[{"bin":string,"data":{"card":object},"error":string}]}
//
// where cards may be null, and the fields of data.card are those of [Card]. Not documented are
// the format of a card identifier, the default and the effect of enhanced, the order and the
// number of the items, when an item has an error, the values of the string fields, the
// contents of networkfees, status codes, error bodies, rate limits, and what happens with
// another number of cards.
package bins
