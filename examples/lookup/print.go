package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/internal/mask"
)

func printTable(w io.Writer, results []bins.Result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { fmt.Fprintln(table, strings.Join(cells, "\t")) }
	row("CARD", "BRAND", "TYPE", "FUNDING", "ISSUER", "COUNTRY", "PRODUCT", "SCA", "ERROR")
	for _, result := range results {
		card, err := result.Card()
		if card == nil {
			card = new(bins.Card) // every cell reads "-"
		}
		problem := ""
		if err != nil {
			problem = cmp.Or(result.Error, "no card in the response")
		}
		row(
			cell(mask.Identifier(result.BIN)),
			cell(card.CardBrand),
			cell(card.Type),
			cell(card.FundingSource),
			cell(cmp.Or(card.Bank.CleanName, card.Bank.Name)),
			cell(card.Country.Alpha2),
			cell(card.Product.ProductName),
			sca(card.Authentication.AuthenticationRequired),
			cell(problem),
		)
	}
	return table.Flush()
}

func cell(text string) string { return cmp.Or(strings.TrimSpace(target.Line(text)), "-") }

// What the service did not state is not "no".
func sca(required bins.Optional[bool]) string {
	switch value, stated := required.Get(); {
	case !stated:
		return "-"
	case value:
		return "required"
	}
	return "no"
}

// printJSON masks copies, because JSON of the library's types is data and holds
// card numbers as they are.
func printJSON(w io.Writer, results []bins.Result) error {
	masked := slices.Clone(results)
	for i := range masked {
		result := &masked[i]
		result.BIN = mask.Identifier(result.BIN)
		result.Error = mask.Text(result.Error)
		if card, _ := result.Card(); card != nil {
			c := *card
			c.PANOrToken = bins.NewIdentifier(c.PANOrToken.String())
			result.Data = &bins.Data{Card: &c}
		}
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(bins.LookupResponse{Cards: masked})
}
