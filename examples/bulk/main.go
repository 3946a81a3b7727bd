// Bulk looks up the cards on standard input, one in a line, and writes CSV with what the
// service knows of each, in the same order. It sends 50 cards in a request, holds a
// bounded number of them in memory, and pauses while the service fails.
//
//	printf '45717360\n411111\n' | go run ./examples/bulk -sandbox
//
// CARDDATA_BIN_URL and CARDDATA_API_KEY name the service and the credential. Exit code:
// 0 every card is in the output, 1 the run has ended early, 2 usage or environment.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/carddata/carddata-go/bins"
	_ "github.com/carddata/carddata-go/internal/sandbox/demo" // the flag -sandbox: delete this line
)

func main() {
	flag.Parse()
	client, err := bins.NewClient(os.Getenv("CARDDATA_BIN_URL"), bins.StaticToken(os.Getenv("CARDDATA_API_KEY")),
		bins.WithRateLimit(20, 1)) // requests a second: what your contract allows
	if err != nil {
		exit(2, "check CARDDATA_BIN_URL and CARDDATA_API_KEY: ", err)
	}
	lines := bufio.NewScanner(os.Stdin)
	cards := func(yield func(string) bool) {
		for lines.Scan() {
			if card := strings.TrimSpace(lines.Text()); card != "" && !yield(card) {
				return
			}
		}
	}
	out := csv.NewWriter(os.Stdout)
	out.Write([]string{"card", "brand", "type", "issuer", "country", "error"})
	for result, err := range client.LookupAll(context.Background(), cards, bins.BulkOptions{}) {
		if err != nil { // the end: no further card can be looked up
			out.Flush()
			exit(1, err)
		}
		problem := ""
		card, err := result.Card()
		if err != nil { // of this card alone
			problem = err.Error() // without the card and the service's words, which are in result.Result.Error
			card = cmp.Or(card, &bins.Card{})
		}
		out.Write([]string{
			result.Input.String(), // masked if it is a card number: Reveal returns it
			card.CardBrand, card.Type, card.Bank.Name, card.Country.Alpha2, problem,
		})
	}
	if out.Flush(); out.Error() != nil || lines.Err() != nil {
		exit(1, cmp.Or(out.Error(), lines.Err()))
	}
}

func exit(code int, message ...any) {
	fmt.Fprint(os.Stderr, append(message, "\n")...)
	os.Exit(code)
}
