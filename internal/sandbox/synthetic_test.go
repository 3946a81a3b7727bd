package sandbox

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestSyntheticCard(t *testing.T) {
	depths := map[int]int{}
	for range 2000 {
		card := fmt.Sprintf("%d%015d", 3+rand.IntN(4), rand.Int64N(1e15))
		var item struct {
			BIN  string
			Data struct {
				Card struct {
					Min string `json:"bin_min"`
					Max string `json:"bin_max"`
				}
			}
		}
		if err := json.Unmarshal(SyntheticCard(card), &item); err != nil {
			t.Fatal(err)
		}
		prefix := SyntheticRange(card)
		depths[len(prefix)]++
		if !strings.HasPrefix(card, prefix) || item.BIN != card[:6] ||
			strings.TrimRight(item.Data.Card.Min, "0") != strings.TrimRight(prefix, "0") ||
			item.Data.Card.Max != prefix+strings.Repeat("9", 19-len(prefix)) || len(item.Data.Card.Min) != 19 {
			t.Fatalf("%s in %s: %+v", card, prefix, item)
		}
		if string(SyntheticCard(card)) != string(SyntheticCard(prefix+strings.Repeat("5", 16-len(prefix)))) {
			t.Fatalf("two cards of the range %s differ", prefix)
		}
	}
	for depth := 6; depth <= 10; depth++ {
		if depths[depth] == 0 {
			t.Errorf("no range of %d digits", depth)
		}
	}
	for _, card := range []string{"", "41111", "tok_411111", strings.Repeat("4", 20)} {
		if SyntheticCard(card) != nil {
			t.Errorf("%q has an item", card)
		}
	}
}

func TestSetLookup(t *testing.T) {
	e := New()
	e.SetLookup(SyntheticCard)
	if got := e.result("4000001", false); string(got) != string(SyntheticCard("4000001")) {
		t.Errorf("item = %s", got)
	}
	if got := e.result("tok", false); !strings.Contains(string(got), "unknown bin") {
		t.Errorf("item = %s", got)
	}
	e.Reset()
	if got := e.result("4000001", false); !strings.Contains(string(got), "unknown bin") {
		t.Errorf("item after reset = %s", got)
	}
}
