// Command carddata looks a card up with the library.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/carddata/carddata-go/bins"
)

func main() {
	client, err := bins.NewClient(os.Getenv("BIN_URL"), bins.StaticToken("key-1"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(client.Lookup(context.Background(), &bins.LookupRequest{Cards: bins.Cards("411111")}))
}
