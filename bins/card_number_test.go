package bins_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/carddata/carddata-go/bins"
)

// ranged answers with the range of all cards that share the first n digits.
func ranged(n int) func(string) (map[string]any, bool) {
	return func(card string) (map[string]any, bool) {
		prefix := card[:min(n, len(card))]
		return map[string]any{"bin": prefix[:6], "data": map[string]any{"card": map[string]any{
			"bin_min": prefix + strings.Repeat("0", 19-len(prefix)), "bin_max": prefix + strings.Repeat("9", 19-len(prefix)),
			"card_brand": "of " + prefix, "pan_or_token": card, "correlation_id": "c-" + card,
		}}}, true
	}
}

// Of what may be a card number, in the digits of any script, only the first digits are sent, in
// ASCII. A shorter identifier and a token are sent unchanged.
func TestPrefixLengthIsAllThatIsSent(t *testing.T) {
	sent := map[string]bool{}
	s := &service{answer: func(card string) (map[string]any, bool) { sent[card] = true; return nil, false }}
	cards := []string{
		"４１１１１１１１１１１１１１１１", "٤١١١١١١١١١١١١١١١", "4111 1111-1111 1111", "𝟒𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏",
	}
	wants := map[string]string{"411111": "411111", "41111111222": "41111111222", "tok_abc": "tok_abc"}
	for _, card := range cards {
		wants[card] = "41111111"
	}
	for card, want := range wants {
		for range s.client(t).LookupAll(t.Context(), slices.Values([]string{card}), bins.BulkOptions{PrefixLength: 8}) {
		}
		if len(sent) != 1 || !sent[want] {
			t.Errorf("for %s: %v", card, sent)
		}
		clear(sent)
	}
}

func TestReusedResultIsNoOtherCards(t *testing.T) {
	s := &service{answer: ranged(8)}
	cards := []string{"4111111111111111", "4111111122222222", "4111111111111111"}
	for r, err := range s.client(t).LookupAll(t.Context(), slices.Values(cards), bins.BulkOptions{PrefixLength: 8}) {
		card, failed := r.Card()
		if err != nil || failed != nil || r.Reused != (r.Index > 0) {
			t.Fatal(r, err)
		}
		if r.Reused && (!card.PANOrToken.IsZero() || card.CorrelationID != "") {
			t.Errorf("result %d has what is another card's", r.Index)
		}
	}
}

// Without a prefix, a card number is not kept.
func TestCardNumbersAreNoKeys(t *testing.T) {
	for _, card := range []string{"4111111111111111", "4111 1111 1111 1111", "4111-1111-1111"} {
		s := &service{}
		memory := bins.NewMemoryCache(bins.CacheOptions{})
		shared := newSharedCache()
		if _, err := loader(t, s, bins.LoaderOptions{Memory: memory, Cache: shared, Window: -1}).Load(t.Context(), card); err != nil {
			t.Fatal(err)
		}
		if memory.Stats().Entries != 0 || len(shared.stored()) != 0 || len(shared.asked()) != 0 {
			t.Errorf("%d entries, values %v, %d gets", memory.Stats().Entries, shared.stored(), len(shared.asked()))
		}
	}
}

// A card number that the service sends as bin is not kept.
func TestMemoryCacheKeepsNoCardNumberOfTheService(t *testing.T) {
	const number = "4111111111111111"
	l := loader(t, &service{answer: func(string) (map[string]any, bool) {
		return map[string]any{"bin": number, "data": map[string]any{"card": map[string]any{}}}, true
	}}, bins.LoaderOptions{Window: -1})
	for _, want := range []string{number, ""} {
		if r, err := l.Load(t.Context(), "41111111"); err != nil || r.BIN != want {
			t.Errorf("%v, %v, want the BIN %q", r, err, want)
		}
	}
}

// A cache holds no card number, in whichever field the service sends one. The caller gets the
// whole result.
func TestCachesHoldNoCardNumber(t *testing.T) {
	const number = "4929420573595709"
	card := func(members map[string]any) map[string]any {
		members["card_brand"] = "VISA"
		return map[string]any{"bin": "492942", "data": map[string]any{"card": members}}
	}
	var escaped strings.Builder
	for _, digit := range number {
		escaped.WriteString(fmt.Sprintf(`\u%04x`, digit))
	}
	named := card(map[string]any{"pan_or_token": number, "correlation_id": number})
	named["bin"] = number
	for name, test := range map[string]struct {
		item  map[string]any
		given bool
	}{
		"in bin, pan_or_token and correlation_id": {named, true},
		"in the bounds of its range": {card(map[string]any{
			"bin_min": number, "bin_max": number, "additional_card_brands": []any{map[string]any{"bin_min": number}},
		}), true},
		"in a phone number":           {card(map[string]any{"bank": map[string]any{"phone": number}}), true},
		"that fails Luhn's test":      {card(map[string]any{"bank": map[string]any{"name": "4929420573595"}}), true},
		"in a bank's name":            {card(map[string]any{"bank": map[string]any{"name": "of " + number}}), false},
		"behind a digit":              {card(map[string]any{"product": map[string]any{"product_id": "1" + number}}), false},
		"in full-width digits":        {card(map[string]any{"combo_card": "４９２９４２０５７３５９５７０９"}), false},
		"in groups":                   {card(map[string]any{"product": map[string]any{"product_id": "4929 4205 7359 5709"}}), false},
		"in fees, in groups":          {card(map[string]any{"networkfees": map[string]any{"x": "4929-4205-7359-5709"}}), false},
		"in fees":                     {card(map[string]any{"networkfees": map[string]any{"x": number}}), false},
		"in fees as a number":         {card(map[string]any{"networkfees": map[string]any{"x": int64(4929420573595709)}}), false},
		"in fees, escaped":            {card(map[string]any{"networkfees": json.RawMessage(`{"x":"` + escaped.String() + `"}`)}), false},
		"in an integer":               {card(map[string]any{"bin_length": int64(4929420573595709)}), false},
		"in a cap":                    {card(map[string]any{"cost": map[string]any{"interchange": map[string]any{"inter": map[string]any{"cap_type_name": number}}}}), false},
		"in the name of a brand":      {card(map[string]any{"additional_card_brands": []any{map[string]any{"card_brand": number}}}), false},
		"in an error beside the card": {map[string]any{"bin": "492942", "error": number, "data": map[string]any{"card": map[string]any{}}}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			cache := newSharedCache()
			s := &service{answer: func(string) (map[string]any, bool) { return test.item, true }}
			memory := bins.NewMemoryCache(bins.CacheOptions{})
			r, err := loader(t, s, bins.LoaderOptions{Cache: cache, Memory: memory}).Load(t.Context(), "tok_8f7e")
			if err != nil || r.BIN != test.item["bin"] {
				t.Errorf("%s: the caller gets %v, %v", name, r, err)
			}
			synctest.Wait()
			if given, kept := len(cache.stored()) == 1, memory.Stats().Entries == 1; given != test.given || kept != test.given {
				t.Errorf("%s: given to the cache: %v, kept in memory: %v", name, given, kept)
			}
			for key, value := range cache.stored() {
				for _, aside := range []string{`"bin_min":"` + number, `"bin_max":"` + number, `"phone":"` + number} {
					value = []byte(strings.ReplaceAll(string(value), aside, ""))
				}
				if strings.Contains(key+string(value), number) {
					t.Errorf("%s: the cache is given %s = %s", name, key, value)
				}
			}
		})
	}
}
