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
	echoed := func(token string) Item { return Item{HasCard: true, Echo: token} }
	tests := []struct {
		name  string
		sent  []string
		items []Item
		want  []int
	}{
		{"in order", []string{"411111", "422222"}, []Item{{BIN: "411111"}, {BIN: "422222"}}, []int{0, 1}},
		{"another order", []string{"411111", "422222"}, []Item{{BIN: "422222"}, {BIN: "411111"}}, []int{1, 0}},
		{"one left out", []string{"411111", "422222"}, []Item{{BIN: "422222"}}, []int{-1, 0}},
		{"nothing", []string{"411111"}, nil, []int{-1}},
		{"one twice", []string{"411111"}, []Item{{BIN: "411111"}, {BIN: "411111"}}, []int{0}},
		{"one twice, the second with a card", []string{"411111"}, []Item{{BIN: "411111"}, ranged("411111", "", "")}, []int{1}},
		{"one token twice, and no other's", []string{"tok_a", "tok_b"}, []Item{echoed("tok_a"), echoed("tok_a")}, []int{0, -1}},
		{"a range of it alone, rather than a shorter name", []string{"4111111111111111111"}, []Item{{BIN: "4111"}, ranged("411111", "4111111111111111111", "4111111111111111111")}, []int{1}},
		{"truncated echo", []string{"4111111111111111", "4222222222222222"}, []Item{{BIN: "422222"}, {BIN: "411111"}, {BIN: "4222"}}, []int{1, 0}},
		{"two items with the same shorter name", []string{"40000001", "40000002"}, []Item{{BIN: "400000"}, {BIN: "400000"}}, []int{0, 1}},
		{"longer echo", []string{"411111", "tok_a"}, []Item{{BIN: "41111100"}, {BIN: "tok_ax"}}, []int{0, 1}},
		{"same echo, by position", []string{"4111111111111111", "4111112222222222"}, []Item{{BIN: "411111"}, {BIN: "411111"}}, []int{0, 1}},
		{"same echo, one left out", []string{"4111111111111111", "4111112222222222"}, []Item{{BIN: "411111"}}, []int{-1, -1}},
		{
			"same echo, told apart by range", []string{"4111111111111111", "4111112222222222"},
			[]Item{ranged("411111", "41111120", "41111129"), ranged("411111", "41111110", "41111119")},
			[]int{1, 0},
		},
		{"no echo, by position", []string{"411111", "422222"}, []Item{{}, {}}, []int{0, 1}},
		{"no echo, a card and an error", []string{"411111", "422222"}, []Item{ranged("", "", ""), {}}, []int{-1, -1}},
		{"no echo, one left out", []string{"411111", "422222"}, []Item{{}}, []int{-1, -1}},
		{"no echo, another order", []string{"411111", "422222", "433333"}, []Item{{}, {BIN: "411111"}, {BIN: "422222"}}, []int{1, 2, -1}},
		{"a token, by position", []string{"tok_a", "tok_b"}, []Item{{BIN: "411111"}, {BIN: "422222"}}, []int{0, 1}},
		{
			"a token that is echoed", []string{"tok_a"},
			[]Item{{BIN: "4"}, echoed("tok_a")},
			[]int{1},
		},
		{
			"same echo, beside a token that is echoed in part", []string{"41111111", "41111101", "tok_abcd1234"},
			[]Item{ranged("411111", "4111110000", "4111119999"), ranged("411111", "4111110000", "4111119999"), {BIN: "tok_abcd"}},
			[]int{0, 1, 2},
		},
		{"echoed in another order, all of a BIN", []string{"4111111", "4111112"}, []Item{{BIN: "411111", HasCard: true, Echo: "4111112"}, {BIN: "411111", HasCard: true, Echo: "4111111"}}, []int{1, 0}},
		{"tokens in another order", []string{"tok_a1", "tok_b1"}, []Item{{BIN: "tok_b"}, {BIN: "tok_a"}}, []int{1, 0}},
		{"a token's card, which names a BIN too", []string{"411111", "tok_a"}, []Item{{BIN: "411111", HasCard: true, Echo: "tok_a"}, {BIN: "tok_a"}}, []int{-1, 0}},
		{"a token twice, the second with another's BIN", []string{"tok_a", "411111"}, []Item{echoed("tok_a"), {BIN: "411111", HasCard: true, Echo: "tok_a"}}, []int{0, -1}},
		{"a token behind a card of nobody", []string{"tok_a", "tok_b"}, []Item{{HasCard: true}, echoed("tok_a")}, []int{1, -1}},
		{"tokens, one with a BIN and one with a longer name", []string{"tok_a1", "tok_b1"}, []Item{{BIN: "411111"}, {BIN: "tok_b1x"}}, []int{-1, -1}},
		{"longer echo, one left out", []string{"411111", "422222"}, []Item{{BIN: "41111100"}}, []int{-1, -1}},
		{"longer echo with the range, one left out", []string{"411111", "422222"}, []Item{ranged("41111100", "41111100", "41111199")}, []int{-1, -1}},
		{"longer echo, and an error of nobody", []string{"411111", "422222"}, []Item{{BIN: "41111100"}, {}}, []int{-1, -1}},
		{"plain once another is matched", []string{"41110000", "41112222", "4111111122"}, []Item{{BIN: "41110000"}, {BIN: "4111"}, {BIN: "41111111"}, {BIN: "411"}}, []int{0, 1, 2}},
		{"longer echo at another's place", []string{"411111", "tok_a"}, []Item{{}, {BIN: "41111100"}}, []int{-1, -1}},
		{"of another request, but in range", []string{"47777777"}, []Item{ranged("477777", "47777770", "47777777")}, []int{0}},
		{"another token's", []string{"tok_a1"}, []Item{{BIN: "tok_b"}}, []int{-1}},
		{"answered for a part of it", []string{"40000"}, []Item{ranged("400000", "40000000", "40000000")}, []int{0}},
		{"another card's", []string{"411111"}, []Item{{BIN: "555555"}}, []int{-1}},
		{"masked, in order", []string{"4111111111111111", "4222222222222222"}, []Item{echoed("411111******1111"), echoed("422222******2222")}, []int{0, 1}},
		{"masked, in another order", []string{"4000021111111111", "5111112222222222"}, []Item{echoed("511111******2222"), echoed("400002******1111")}, []int{1, 0}},
		{"masked, in bin", []string{"4000021111111111", "5111112222222222"}, []Item{{BIN: "511111xxxxxx2222"}, {BIN: "400002xxxxxx1111"}}, []int{1, 0}},
		{"masked and grouped", []string{"4000021111111111", "5111112222222222"}, []Item{echoed("5111 11** **** 2222"), echoed("4000-02XX-XXXX-1111")}, []int{1, 0}},
		{"masked to another length", []string{"4000021111111111", "5111112222222222"}, []Item{echoed("511111...2222"), echoed("400002****1111")}, []int{1, 0}},
		{"shortened in pan_or_token", []string{"4000021111111111", "5111112222222222"}, []Item{echoed("511111"), echoed("400002")}, []int{1, 0}},
		{"with a mark behind", []string{"4000021111111111", "5111112222222222"}, []Item{echoed("5111112222222222X"), echoed("4000021111111111X")}, []int{1, 0}},
		{"last four", []string{"4000021111111111", "5111112222222222"}, []Item{echoed("2222"), echoed("****1111")}, []int{1, 0}},
		{"last four in bin", []string{"4000021111111111", "5111112222222222"}, []Item{{BIN: "2222"}, {BIN: "1111"}}, []int{1, 0}},
		{"last four of both, by position", []string{"4000021111111111", "5111112222221111"}, []Item{echoed("1111"), echoed("1111")}, []int{0, 1}},
		{"masked alike, by position", []string{"4111110000001111", "4111119999991111"}, []Item{echoed("411111******1111"), echoed("411111******1111")}, []int{0, 1}},
		{"masked alike, one left out", []string{"4111110000001111", "4111119999991111"}, []Item{echoed("411111******1111")}, []int{-1, -1}},
		{"a mask of nobody", []string{"4111111111111111"}, []Item{echoed("422222******2222")}, []int{-1}},
		{"a mask of nobody, though the BIN fits", []string{"4111111111111111"}, []Item{{BIN: "411111", HasCard: true, Echo: "411111******2222"}}, []int{-1}},
		{"last four of nobody", []string{"4111111111111111", "4222222222222222"}, []Item{echoed("3333"), echoed("4444")}, []int{-1, -1}},
		{"wholly masked, by position", []string{"4111111111111111", "4222222222222222"}, []Item{echoed("****"), echoed("****")}, []int{0, 1}},
		{"a BIN, by a masked card number", []string{"45717360", "41111111"}, []Item{echoed("457173**********"), echoed("411111**********")}, []int{0, 1}},
		{"a BIN, by a masked card number at another's place", []string{"45717360", "41111111"}, []Item{echoed("411111**********"), echoed("457173**********")}, []int{1, 0}},
		{"masked tokens", []string{"tok_1234567890", "tok_abcdefghij"}, []Item{echoed("tok_****ghij"), echoed("tok_****7890")}, []int{1, 0}},
		{"another token's mask", []string{"tok_1234567890"}, []Item{echoed("tok_****ghij")}, []int{-1}},
		{"tokens, all called so", []string{"tok_a1", "tok_b1"}, []Item{{BIN: "411111", HasCard: true, Echo: "TOKEN"}, {BIN: "422222", HasCard: true, Echo: "TOKEN"}}, []int{0, 1}},
		{"one token, called so", []string{"tok_a1"}, []Item{echoed("Network token")}, []int{0}},
		{"card numbers, all called so", []string{"4111111111111111", "4222222222222222"}, []Item{{BIN: "422222", HasCard: true, Echo: "PAN"}, {BIN: "411111", HasCard: true, Echo: "PAN"}}, []int{1, 0}},
		{"a token that begins with a kind", []string{"4111111111111111", "PAN_1"}, []Item{{BIN: "411111", HasCard: true, Echo: "PAN"}, {BIN: "422222", HasCard: true, Echo: "PAN_1"}}, []int{0, 1}},
		{"another card number", []string{"4111111111111111", "4222222222222222"}, []Item{echoed("4222222222222223"), echoed("4111111111111112")}, []int{-1, -1}},
		{"a number in place of the card's, under its BIN", []string{"4111111111111111"}, []Item{{BIN: "411111", HasCard: true, Echo: "9222222222221111"}}, []int{0}},
		{"tokens for card numbers, by position", []string{"4111111111111111", "4222222222222222"}, []Item{echoed("tok_a"), echoed("tok_b")}, []int{0, 1}},
		{"card numbers for tokens, by position", []string{"tok_a", "tok_b"}, []Item{echoed("411111******1111"), echoed("422222******2222")}, []int{0, 1}},
		{"grouped otherwise", []string{"4111111111111111", "4222222222222222"}, []Item{echoed("4222 2222 2222 2222"), echoed("4111-1111-1111-1111")}, []int{1, 0}},
		{"in the upper half of its range", []string{"4225095"}, []Item{ranged("", "4225090000000000000", "4225099999999999999")}, []int{0}},
		{"of a range that is none", []string{"422509"}, []Item{ranged("", "4111119", "4111110")}, []int{0}},
		{"of a range that is no number", []string{"422509"}, []Item{ranged("", "41111o", "411111")}, []int{0}},
		{"longer than the last number of its range", []string{"4111111111111111"}, []Item{ranged("", "41111110", "41111111")}, []int{0}},
		{"out of its range", []string{"4111111111111111"}, []Item{ranged("", "555555", "555555")}, []int{-1}},
	}
	for _, tt := range tests {
		if got := Find(tt.sent, tt.items, itself); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// itself is the item of an item.
func itself(i *Item) Item { return *i }

// An answer is an item with a card of some brand.
type answer struct {
	Item
	brand string
}

func (a *answer) item() Item { return a.Item }

// Random services shorten what they echo, leave items out, add other and empty items, and put
// errors anywhere. No card gets the item of another card, and a card that an item names exactly
// gets that item.
func TestNoCardGetsAnother(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	named, unanswered, requests, batches := 0, 0, 0, 20_000
	for range batches {
		all := randomBatch(rnd)
		for _, group := range Apart(all, same) {
			requests++
			items, exact := randomResponse(rnd, group)
			found := Find(group, items, (*answer).item)
			for i, id := range group {
				if j := found[i]; j >= 0 && items[j].HasCard && items[j].brand != id {
					t.Fatalf("%s of %q got the item of %s: %v", id, group, items[j].brand, found)
				} else if exact[id] {
					if named++; j < 0 || !items[j].HasCard {
						unanswered++
					}
				}
			}
		}
	}
	if named < batches || 100*unanswered > named || requests > 3*batches {
		t.Errorf("%d of %d named cards unanswered, %d requests for %d batches", unanswered, named, requests, batches)
	}
}

// Responses in order are matched in a shorter way, with the same result.
func TestInOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	inOrder := 0
	for range 20_000 {
		all := randomBatch(rnd)
		if rnd.IntN(8) == 0 {
			all = append(all, "PANOPTIC")
		}
		for _, group := range Apart(all, same) {
			var items []Item
			for _, id := range group {
				items = append(items, randomEcho(rnd, id, group[rnd.IntN(len(group))]))
			}
			if i := rnd.IntN(8 * len(items)); i < len(items) {
				items[0], items[i] = items[i], items[0]
			}
			open := func() *correlation {
				c := begin(group, len(items))
				c.items = items
				return &c
			}
			if c := open(); c.inOrder(c.isNamed) && len(group) > 1 {
				inOrder++
			}
			slow := open()
			slow.byName()
			slow.compare()
			slow.byElimination()
			slow.byPosition()
			if found := Find(group, items, itself); !slices.Equal(found, slow.found) {
				t.Fatalf("%q with %v: %v, in order %v", group, items, slow.found, found)
			}
		}
	}
	if inOrder < 2000 {
		t.Errorf("%d responses were in order", inOrder)
	}
}

// randomEcho is an item for an identifier: its BIN shortened, and perhaps with a range, at
// times that of another identifier, a kind, the whole identifier, or a mask of it.
func randomEcho(rnd *rand.Rand, id, other string) Item {
	item := Item{BIN: id[:min(len(id), 5+rnd.IntN(8))], HasCard: true}
	switch size := rnd.IntN(20); {
	case size < 12: // digits that its range has in common
		if rnd.IntN(8) > 0 {
			other = id
		}
		common := other[:min(len(other), max(4, size))]
		item.Low, item.High = common+strings.Repeat("0", 16-len(common)), common+strings.Repeat("9", 16-len(common))
	case size < 16:
	case size < 18:
		item.Echo = []string{"PAN", "TOKEN", "PANOPTIC"}[rnd.IntN(3)]
	case size == 18:
		item.Echo = id[:4] + strings.Repeat("*", len(id)-6) + id[len(id)-2:]
	default:
		item.Echo = id
	}
	return item
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
		item := answer{Item{BIN: id, HasCard: true}, id}
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
