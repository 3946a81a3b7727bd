package target

import (
	"io"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/internal/program"
)

var settings = Settings{URL: "CARDDATA_BIN_URL", Required: []string{"CARDDATA_API_KEY"}}

// TestInsecureHTTP reaches a sandbox in another container only when that is
// allowed.
func TestInsecureHTTP(t *testing.T) {
	for value, want := range map[string]bool{"": false, "0": false, "1": true, "yes": false} {
		env := program.Variables{"CARDDATA_BIN_URL": "http://sandbox:8080", "CARDDATA_API_KEY": "k", InsecureHTTP: value}
		service, err := Open(io.Discard, env.Lookup, settings)
		if err == nil {
			_, err = bins.NewClient(service.URL, bins.StaticToken("k"), service.Options()...)
		}
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), InsecureHTTP) {
			t.Errorf("%q: %v", value, err)
		}
	}
	// It says how, and not where: alone it leaves the sandbox chosen.
	service, err := Open(io.Discard, program.Variables{InsecureHTTP: "1"}.Lookup, settings)
	if err != nil || service.Live() {
		t.Fatalf("%v, %v", service, err)
	}
	service.Close()
}

// TestLiveHost tells the host as it was set, also where its digits could be a card
// number's.
func TestLiveHost(t *testing.T) {
	const host = "eu-2026-1122-0642-3131.service.example"
	var stderr strings.Builder
	env := program.Variables{"CARDDATA_BIN_URL": "https://user:word@" + host + "/x", "CARDDATA_API_KEY": "k"}
	if _, err := Open(&stderr, env.Lookup, settings); err != nil || stderr.String() != "live "+host+"\n" {
		t.Errorf("%v, %q", err, &stderr)
	}
}
