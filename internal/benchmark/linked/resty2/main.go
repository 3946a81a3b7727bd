// Command resty2 looks a card up with the second version of resty.
package main

import (
	"fmt"
	"os"

	"github.com/go-resty/resty/v2"
)

func main() {
	var response any
	resp, err := resty.New().R().SetAuthToken("key-1").SetBody(`{"cards":[{"card":"411111"}]}`).SetResult(&response).Post(os.Getenv("BIN_URL"))
	fmt.Println(resp, err, response)
}
