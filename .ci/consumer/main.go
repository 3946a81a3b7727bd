// Consumer is a program of a user's own: outside the repository, it imports all
// three packages and calls the service that the environment names.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

func main() {
	log.SetFlags(0)
	ctx := context.Background()

	lookup, err := bins.NewClient(os.Getenv("CARDDATA_BIN_URL"), bins.StaticToken(os.Getenv("CARDDATA_API_KEY")))
	check(err)
	resp, err := lookup.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards("411111")})
	check(err)
	card, err := resp.Cards[0].Card()
	check(err)
	fmt.Println("bins:", card.CardBrand)

	refund, err := refunds.NewClient(os.Getenv("CARDDATA_REFUND_URL"))
	check(err)
	receipt, err := refund.Submit(ctx, os.Getenv("CARDDATA_ACCOUNT_ID"), &refunds.Refund{RefundID: "consumer-1", Amount: new(int64(1))})
	check(err)
	fmt.Println("refunds:", receipt)

	result, err := updater.NewClient(os.Getenv("CARDDATA_UPDATER_URL"), os.Getenv("CARDDATA_MERCHANT_ID"),
		updater.StaticToken(os.Getenv("CARDDATA_ACCESS_TOKEN")))
	check(err)
	download, err := result.Download(ctx, "42")
	check(err)
	defer download.Close()
	n, err := io.Copy(io.Discard, download)
	check(err)
	fmt.Println("updater:", n, "bytes")
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
