// Command nethttp looks a card up with the standard library alone.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
)

func main() {
	req, err := http.NewRequest(http.MethodPost, os.Getenv("BIN_URL"), strings.NewReader(`{"cards":[{"card":"411111"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Header.Set("Authorization", "Bearer key-1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	var response any
	fmt.Println(json.NewDecoder(resp.Body).Decode(&response), response)
}
