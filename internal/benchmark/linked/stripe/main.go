// Command stripe looks a card up with what is behind the calls of stripe-go.
package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"

	"github.com/stripe/stripe-go/v84"
)

func main() {
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{URL: new(os.Getenv("BIN_URL"))}).(*stripe.BackendImplementation)
	req, err := backend.NewRequest(http.MethodPost, "/v1/bins/multiple", "key-1", "application/json", &stripe.Params{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var response struct {
		stripe.APIResource
		Cards []any `json:"cards"`
	}
	fmt.Println(backend.Do(req, bytes.NewBufferString(`{"cards":[{"card":"411111"}]}`), &response), response.Cards)
}
