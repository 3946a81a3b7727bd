// Lookup prints what the service knows of 1 to 50 cards.
//
//	go run ./examples/lookup 45717360 411111 999999
//
// CARDDATA_BIN_URL and CARDDATA_API_KEY name the service and the credential. Exit code:
// 0 looked up, 1 failed, 2 usage or environment.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/carddata/carddata-go/bins"
	_ "github.com/carddata/carddata-go/internal/sandbox/demo/unasked" // invented data if nothing is set: delete this line
)

func main() {
	flag.Parse()
	if flag.NArg() == 0 {
		exit(2, "usage: lookup CARD ...")
	}
	client, err := bins.NewClient(os.Getenv("CARDDATA_BIN_URL"), bins.StaticToken(os.Getenv("CARDDATA_API_KEY")))
	if err != nil {
		exit(2, "check CARDDATA_BIN_URL and CARDDATA_API_KEY: ", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	response, err := client.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards(flag.Args()...)})
	if err != nil {
		exit(1, err) // holds no card number and no credential
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CARD\tBRAND\tTYPE\tFUNDING\tISSUER\tCOUNTRY\tPRODUCT\tSCA\tERROR")
	for _, result := range response.Cards {
		card, err := result.Card()
		problem := "-"
		if err != nil { // of this card alone; the others may be fine
			problem = cmp.Or(result.Error, "no card in the response") // the service's words: keep them out of logs
			card = cmp.Or(card, &bins.Card{})
		}
		cells := []string{
			bins.NewIdentifier(result.BIN).String(), // masked if it is a card number
			card.CardBrand, card.Type, card.FundingSource,
			cmp.Or(card.Bank.CleanName, card.Bank.Name), card.Country.Alpha2, card.Product.ProductName,
			authentication(card), problem,
		}
		for i, cell := range cells {
			cells[i] = cmp.Or(strings.TrimSpace(cell), "-")
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	if err := table.Flush(); err != nil {
		exit(1, err)
	}
}

// What the service does not state is not "no".
func authentication(card *bins.Card) string {
	switch required, stated := card.Authentication.AuthenticationRequired.Get(); {
	case !stated:
		return "-"
	case required:
		return "required"
	}
	return "no"
}

func exit(code int, message ...any) {
	fmt.Fprint(os.Stderr, append(message, "\n")...)
	os.Exit(code)
}
