package main

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// TestRecall teaches a cache ranges that lie in each other, in every order, and
// finds each with the numbers that no narrower one holds.
func TestRecall(t *testing.T) {
	ranges := [][2]string{
		{"4111", "4111"}, {"41110", "41110"}, {"411100", "411100"}, {"411105", "411108"}, {"411109", "411109"}, {"41112345", "41112345"},
	}
	for shift := range ranges {
		var answers []answer
		for i := range ranges {
			r := ranges[(i+shift)%len(ranges)]
			low, high := number(first(r[0])), number(last(r[1]))
			card, err := json.Marshal(map[string]any{"bin_min": low, "bin_max": high, "card_brand": r[0]})
			if err != nil {
				t.Fatal(err)
			}
			answers = append(answers, answer{Time: time.Now().Unix(), Card: card})
		}
		answers = append(answers, answers[0],
			answer{Time: time.Now().Unix(), ID: "45717360", Card: json.RawMessage(`{"card_brand":"by BIN"}`)},
			answer{Time: time.Now().Unix(), ID: "tok", Error: "unknown"},
			answer{Time: time.Now().Add(-25 * time.Hour).Unix(), ID: "old", Error: "stale"},
			answer{Time: time.Now().Unix(), Card: json.RawMessage(`"damaged"`)})
		cache := bins.NewMemoryCache(bins.CacheOptions{})
		o := bins.BulkOptions{Ranges: true, Enhanced: new(true)}
		if err := recall(t.Context(), answers, o, cache); err != nil {
			t.Fatal(err)
		}
		none := player{answer: &answer{}}
		client, err := none.client()
		if err != nil {
			t.Fatal(err)
		}
		o.Memory = cache
		for card, want := range map[string]string{
			"4111000000000000": "411100", "4111010000000000": "41110", "4111050000000000": "411105", "4111089999999999": "411105",
			"4111099999999999": "411109", "4111234500000000": "41112345", "4111234600000000": "4111", "4111999999999999": "4111",
			"45717360": "by BIN", "tok": "unknown", "old": "",
		} {
			for r, err := range client.LookupAll(t.Context(), func(yield func(string) bool) { yield(card) }, o) {
				found, _ := r.Result.Card()
				got := r.Result.Error
				if found != nil {
					got = found.CardBrand
				}
				if err != nil || got != want {
					t.Errorf("shift %d: %s is answered by %q, %v; want %q", shift, card, got, err, want)
				}
			}
		}
	}
}

func TestLearn(t *testing.T) {
	columns, err := parseColumns("bank,bank.name,country.name,cost.interchange.domestic,country,prepaid,error")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		sent, low, high string
		ranges          bool
		want            string
	}{
		{"411111", "", "", true, "411111"},
		{"411111", "4111110000000000000", "4111119999999999999", false, "411111"},
		{"411111", "4111110000000000000", "4111119999999999999", true, "range"},
		{"4111111111111111", "4111110000000000000", "4111119999999999999", true, "range"},
		{"4111111111111111", "4111110000000000", "4111119999999999", true, "range"},
		{"4111111111111111", "4111110000000000000", "4111119999999999999", false, ""},
		{"4111111111111111", "4211110000000000000", "4211119999999999999", true, ""}, // of another card
		{"4111111111111111", "4111111111100000000", "4111111111199999999", true, "range"},
		{"4111111111111111", "4111111111110000000", "4111111111119999999", true, ""}, // most of the number
		{"4111111111111111", "4111111111111111", "4111111111111111", true, ""},
		{"4111-1111-1111-1111", "", "", true, ""},
		{"tok-1", "4111110000000000000", "4111119999999999999", true, "tok-1"},
	} {
		r := bins.Result{BIN: test.sent, Error: "of 4111111111111111", Data: &bins.Data{Card: &bins.Card{
			BINMin: test.low, BINMax: test.high, PANOrToken: bins.NewIdentifier(test.sent),
			Bank: bins.Bank{Name: "N"}, Country: bins.Country{Name: "C"}, Prepaid: bins.Stated(true),
		}}}
		a, err := learn(columns, test.sent, &r, test.ranges)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if a != nil {
			if got = a.ID; got == "" {
				got = "range"
			}
			var card bins.Card
			if err := json.Unmarshal(a.Card, &card); err != nil || card.Bank.Name != "N" || card.Country.Name != "C" ||
				!card.Prepaid.Or(false) || a.Error != "of 411111******1111" || card.BINMin != test.low || !card.PANOrToken.IsZero() {
				t.Errorf("%s, %v", a.Card, err)
			}
		}
		if got != test.want {
			t.Errorf("%s in %s..%s (%v) is kept as %q, want %q", test.sent, test.low, test.high, test.ranges, got, test.want)
		}
	}
}

func TestDemoHoldsNoCardNumbers(t *testing.T) {
	luhn := func(number string) bool {
		sum := 0
		for i := range len(number) {
			digit := int(number[len(number)-1-i] - '0')
			if i%2 == 1 {
				if digit *= 2; digit > 9 {
					digit -= 9
				}
			}
			sum += digit
		}
		return sum%10 == 0
	}
	if !luhn("4111111111111111") {
		t.Fatal("the test is wrong")
	}
	for i := range 1000 {
		number := fmt.Sprintf("4%014d", i*7919)
		if number += string(notTheCheckDigit(number)); luhn(number) || len(number) != 16 {
			t.Errorf("%s may be a card number", number)
		}
	}
}
