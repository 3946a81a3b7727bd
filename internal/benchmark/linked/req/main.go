// Command req looks a card up with req.
package main

import (
	"fmt"
	"os"

	"github.com/imroc/req/v3"
)

func main() {
	var response any
	resp, err := req.C().R().SetBearerAuthToken("key-1").SetBodyJsonString(`{"cards":[{"card":"411111"}]}`).SetSuccessResult(&response).Post(os.Getenv("BIN_URL"))
	fmt.Println(resp, err, response)
}
