package service

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/carddata/carddata-go/bins"
)

// TestResponseNamesTheCards reads a response in pieces of any size: each must name
// the cards that were asked for.
func TestResponseNamesTheCards(t *testing.T) {
	request, err := json.Marshal(bins.LookupRequest{Cards: bins.Cards(Cards(123_456, 50)...)})
	if err != nil {
		t.Fatal(err)
	}
	read := func(wrap func(io.Reader) io.Reader) string {
		body, length := (&Service{}).response(request)
		text, err := io.ReadAll(wrap(body))
		if err != nil || int64(len(text)) != length {
			t.Fatalf("%d of %d bytes: %v", len(text), length, err)
		}
		return string(text)
	}
	whole := read(func(r io.Reader) io.Reader { return r })
	if read(iotest.OneByteReader) != whole || read(iotest.HalfReader) != whole {
		t.Error("pieces add up to another response")
	}
	var resp bins.LookupResponse
	if err := json.Unmarshal([]byte(whole), &resp); err != nil || len(resp.Cards) != 50 {
		t.Fatal(len(resp.Cards), err)
	}
	banks := map[string]bool{}
	for i, r := range resp.Cards {
		card := Card(123_456 + i)
		if r.BIN != card[:6] || r.Data.Card.BINMin != card+strings.Repeat("0", 9) || r.Data.Card.BINMax != card+strings.Repeat("9", 9) {
			t.Fatalf("item %d is %+v", i, r)
		}
		banks[r.Data.Card.Bank.Name] = true
	}
	if len(banks) < 25 || len(whole) < 110_000 || len(whole) > 120_000 {
		t.Errorf("the cards are of %d banks, in %d bytes", len(banks), len(whole))
	}
}
