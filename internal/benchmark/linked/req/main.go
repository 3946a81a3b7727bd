// Command req looks a card up with req.
package main

import (
	"fmt"
	"os"

	"github.com/imroc/req/v3"
)

func main() {
	var answer any
	resp, err := req.C().R().SetBearerAuthToken("key-1").SetBodyJsonString(`{"cards":[{"card":"411111"}]}`).SetSuccessResult(&answer).Post(os.Getenv("BIN_URL"))
	fmt.Println(resp, err, answer)
}
