// Command resty3 looks a card up with the third version of resty.
package main

import (
	"fmt"
	"os"

	"resty.dev/v3"
)

func main() {
	var response any
	client := resty.New()
	defer client.Close()
	resp, err := client.R().SetAuthToken("key-1").SetBody(`{"cards":[{"card":"411111"}]}`).SetResult(&response).Post(os.Getenv("BIN_URL"))
	fmt.Println(resp, err, response)
}
