package match

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	ranged := func(bin, low, high string) Item { return Item{BIN: bin, HasCard: true, Low: low, High: high} }
	echoed := func(bin, echo string) Item { return Item{BIN: bin, HasCard: true, Echo: echo} }
	for _, tt := range []struct {
		name  string
		sent  []string
		items []Item
		want  []int
	}{
		{"the same names", []string{"411111", "422222"}, []Item{{BIN: "422222"}, {BIN: "411111"}}, []int{1, 0}},
		{"one left out", []string{"411111", "422222"}, []Item{{BIN: "422222"}}, []int{-1, 0}},
		{"nothing", []string{"411111"}, nil, []int{-1}},
		{"one twice, the second with a card", []string{"411111"}, []Item{{BIN: "411111"}, ranged("411111", "", "")}, []int{1}},
		{"one twice, and no other's", []string{"tok_a", "tok_b"}, []Item{echoed("", "tok_a"), echoed("", "tok_a")}, []int{0, -1}},
		{"a token's card, which names a BIN too", []string{"411111", "tok_a"}, []Item{echoed("411111", "tok_a"), {BIN: "tok_a"}}, []int{-1, 0}},
		{"card numbers of one BIN", []string{"4111111", "4111112"}, []Item{echoed("411111", "4111112"), echoed("411111", "4111111")}, []int{1, 0}},
		{"a number in place of the card's, under its BIN", []string{"4111111111111111"}, []Item{echoed("411111", "9222222222221111")}, []int{0}},

		{"shortened names", []string{"4111111111111111", "tok_b1"}, []Item{{BIN: "tok_b"}, {BIN: "411111"}}, []int{1, 0}},
		{"shortened in pan_or_token", []string{"4000021111111111", "5111112222222222"}, []Item{echoed("", "511111"), echoed("", "400002")}, []int{1, 0}},
		{"a name that two begin with, one of them matched", []string{"41110000", "41112222"}, []Item{{BIN: "4111"}, {BIN: "41110000"}}, []int{1, 0}},
		{"a name that two begin with, one left out", []string{"4111111111111111", "4111112222222222"}, []Item{{BIN: "411111"}}, []int{-1, -1}},
		{"two names that one begins with", []string{"4111111111111111"}, []Item{{BIN: "4111"}, {BIN: "411111"}}, []int{-1}},

		{"shortened alike", []string{"4111111111111111", "4111112222222222"}, []Item{{BIN: "411111"}, {BIN: "411111"}}, []int{0, 1}},
		{"shortened alike, and out of order by the range", []string{"41111111", "41111222"}, []Item{ranged("411111", "41111220", "41111229"), ranged("411111", "41111110", "41111119")}, []int{-1, -1}},
		{"shortened alike, behind one at another place", []string{"40000001", "40000002", "411111"}, []Item{{BIN: "411111"}, {BIN: "400000"}, {BIN: "400000"}}, []int{-1, -1, 0}},
		{"no names", []string{"411111", "tok_b"}, []Item{{}, {}}, []int{0, 1}},
		{"no names, one left out", []string{"411111", "422222"}, []Item{{}}, []int{-1, -1}},
		{"no name, behind one at another place", []string{"411111", "422222"}, []Item{{}, {BIN: "411111"}}, []int{1, -1}},
		{"longer names", []string{"411111", "tok_a"}, []Item{{BIN: "41111100"}, {BIN: "tok_ax"}}, []int{0, 1}},
		{"longer names in another order", []string{"411111", "422222"}, []Item{{BIN: "42222200"}, {BIN: "41111100"}}, []int{-1, -1}},
		{"tokens, with the BINs of their cards", []string{"tok_1", "9f_2"}, []Item{echoed("411119", "TOKEN"), echoed("422222", "TOKEN")}, []int{0, 1}},
		{"other tokens", []string{"tok_1", "tok_2"}, []Item{echoed("", "tok_3"), echoed("", "tok_4")}, []int{-1, -1}},
		{"tokens for card numbers", []string{"4111111111111111", "4222222222222222"}, []Item{echoed("", "9f_1"), echoed("", "8f_2")}, []int{0, 1}},
		{"another card's", []string{"411111"}, []Item{{BIN: "555555"}}, []int{-1}},
		{"another card number", []string{"4111111111111111", "4222222222222222"}, []Item{echoed("", "4111111111111111"), echoed("", "4222222222222223")}, []int{0, -1}},
		{"another card's range", []string{"4225095"}, []Item{ranged("", "4111110000000000000", "4111119999999999999")}, []int{-1}},
		{"masked", []string{"4111111111111111", "4222222222222222"}, []Item{echoed("", "411111******1111"), echoed("", "422222******2222")}, []int{0, 1}},
		{"masked, in another order", []string{"4111111111111111", "4222222222222222"}, []Item{echoed("", "422222******2222"), echoed("", "411111xxxxxx1111")}, []int{-1, -1}},
		{"last four", []string{"4000021111113333"}, []Item{echoed("", "3333")}, []int{-1}},
	} {
		if got := Find(tt.sent, tt.items, func(i *Item) Item { return *i }); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// An answer is an item with a card of some brand.
type answer struct {
	Item
	brand string
}

// Random services shorten what they echo, leave items out, add other and empty items, and put
// errors anywhere. No card gets the item of another card, and a card that an item names exactly
// gets that item.
func TestNoCardGetsAnother(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	named, requests, batches := 0, 0, 5_000
	for range batches {
		for _, group := range Apart(randomBatch(rnd), same) {
			requests++
			items, exact := randomResponse(rnd, group)
			found := Find(group, items, func(a *answer) Item { return a.Item })
			for i, id := range group {
				if j := found[i]; j >= 0 && items[j].HasCard && items[j].brand != id {
					t.Fatalf("%s of %q got the item of %s: %v", id, group, items[j].brand, found)
				} else if exact[id] {
					if named++; j < 0 || !items[j].HasCard {
						t.Fatalf("%s of %q got no card: %v", id, group, found)
					}
				}
			}
		}
	}
	if named < batches || requests > 3*batches {
		t.Errorf("%d cards named, %d requests for %d batches", named, requests, batches)
	}
}

func randomBatch(rnd *rand.Rand) (batch []string) {
	ids := map[string]bool{}
	for range 1 + rnd.IntN(12) {
		var id strings.Builder
		fmt.Fprintf(&id, "4000%02d", rnd.IntN(6))
		for range rnd.IntN(3) { // levels
			fmt.Fprintf(&id, "%0*d", 2+rnd.IntN(3), rnd.IntN(6))
		}
		ids[id.String()] = true
	}
	batch = slices.Sorted(maps.Keys(ids))
	rnd.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
	return batch
}

func randomResponse(rnd *rand.Rand, sent []string) (items []answer, exact map[string]bool) {
	exact = map[string]bool{}
	var errors []answer
	style, shortens := rnd.IntN(4), rnd.IntN(2) == 0
	for _, id := range sent {
		rest := 19 - len(id)
		item := answer{Item{BIN: id, HasCard: true, Low: id + strings.Repeat("0", rest), High: id + strings.Repeat("9", rest)}, id}
		switch n := rnd.IntN(10); {
		case n < 5:
			exact[id] = true
			items = append(items, item)
		case n < 7 && shortens:
			item.BIN = id[:min(len(id), 6)]
			exact[id] = item.BIN == id
			items = append(items, item)
		case n < 8:
			errors = append(errors, answer{})
		}
	}
	for range rnd.IntN(3) {
		stranger := [...]answer{{}, {Item{BIN: "999999", HasCard: true}, "stranger"}, {}}[rnd.IntN(3)]
		items = slices.Insert(items, rnd.IntN(len(items)+1), stranger)
	}
	switch style {
	case 0:
		items = append(errors, items...)
	case 1:
		items = append(items, errors...)
	default:
		for _, e := range errors {
			items = slices.Insert(items, rnd.IntN(len(items)+1), e)
		}
	}
	return items, exact
}

func same(id string) string { return id }

// No identifier of a group begins with another one, and there are no more groups than needed.
func TestApart(t *testing.T) {
	for want, ids := range map[int][]string{
		1: {"400000", "400001", "tok"}, 2: {"400000", "40000001", "40000002", "411111"}, 3: {"4000001111", "400000", "40000011", "5"},
	} {
		groups, n := Apart(ids, same), 0
		for _, group := range groups {
			n += len(group)
			for _, a := range group {
				for _, b := range group {
					if a != b && strings.HasPrefix(a, b) {
						t.Errorf("%s and %s share a request", a, b)
					}
				}
			}
		}
		if len(groups) != want || n != len(ids) {
			t.Errorf("%q: %d groups of %d identifiers, want %d", ids, len(groups), n, want)
		}
	}
}
