package match

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestCorrelate(t *testing.T) {
	ranged := func(bin, low, high string) Result {
		return Result{BIN: bin, Data: &Data{Card: &Card{BINMin: low, BINMax: high}}}
	}
	echoed := func(token string) Result {
		return Result{Data: &Data{Card: &Card{PANOrToken: NewIdentifier(token)}}}
	}
	tests := []struct {
		name  string
		sent  []string
		items []Result
		want  []int
	}{
		{"in order", []string{"411111", "422222"}, []Result{{BIN: "411111"}, {BIN: "422222"}}, []int{0, 1}},
		{"another order", []string{"411111", "422222"}, []Result{{BIN: "422222"}, {BIN: "411111"}}, []int{1, 0}},
		{"one left out", []string{"411111", "422222"}, []Result{{BIN: "422222"}}, []int{-1, 0}},
		{"nothing", []string{"411111"}, nil, []int{-1}},
		{"one twice", []string{"411111"}, []Result{{BIN: "411111", Error: "a"}, {BIN: "411111", Error: "b"}}, []int{0}},
		{"one twice, the second with a card", []string{"411111"}, []Result{{BIN: "411111", Error: "a"}, ranged("411111", "", "")}, []int{1}},
		{"one token twice, and no other's", []string{"tok_a", "tok_b"}, []Result{echoed("tok_a"), echoed("tok_a")}, []int{0, -1}},
		{"a range of it alone, rather than a shorter name", []string{"4111111111111111111"}, []Result{{BIN: "4111"}, ranged("411111", "4111111111111111111", "4111111111111111111")}, []int{1}},
		{"truncated echo", []string{"4111111111111111", "4222222222222222"}, []Result{{BIN: "422222"}, {BIN: "411111"}, {BIN: "4222"}}, []int{1, 0}},
		{"two items with the same shorter name", []string{"40000001", "40000002"}, []Result{{BIN: "400000"}, {BIN: "400000"}}, []int{0, 1}},
		{"longer echo", []string{"411111", "tok_a"}, []Result{{BIN: "41111100"}, {BIN: "tok_ax"}}, []int{0, 1}},
		{"same echo, by position", []string{"4111111111111111", "4111112222222222"}, []Result{{BIN: "411111"}, {BIN: "411111"}}, []int{0, 1}},
		{"same echo, one left out", []string{"4111111111111111", "4111112222222222"}, []Result{{BIN: "411111"}}, []int{-1, -1}},
		{
			"same echo, told apart by range", []string{"4111111111111111", "4111112222222222"},
			[]Result{ranged("411111", "41111120", "41111129"), ranged("411111", "41111110", "41111119")},
			[]int{1, 0},
		},
		{"no echo, by position", []string{"411111", "422222"}, []Result{{Error: "a"}, {Error: "b"}}, []int{0, 1}},
		{"no echo, a card and an error", []string{"411111", "422222"}, []Result{ranged("", "", ""), {Error: "a"}}, []int{-1, -1}},
		{"no echo, one left out", []string{"411111", "422222"}, []Result{{Error: "a"}}, []int{-1, -1}},
		{"no echo, another order", []string{"411111", "422222", "433333"}, []Result{{Error: "a"}, {BIN: "411111"}, {BIN: "422222"}}, []int{1, 2, -1}},
		{"a token, by position", []string{"tok_a", "tok_b"}, []Result{{BIN: "411111"}, {BIN: "422222"}}, []int{0, 1}},
		{
			"a token that is echoed", []string{"tok_a"},
			[]Result{{BIN: "4"}, echoed("tok_a")},
			[]int{1},
		},
		{
			"same echo, beside a token that is echoed in part", []string{"41111111", "41111101", "tok_abcd1234"},
			[]Result{ranged("411111", "4111110000", "4111119999"), ranged("411111", "4111110000", "4111119999"), {BIN: "tok_abcd", Error: "unknown"}},
			[]int{0, 1, 2},
		},
		{"echoed in another order, all of a BIN", []string{"4111111", "4111112"}, []Result{{BIN: "411111", Data: echoed("4111112").Data}, {BIN: "411111", Data: echoed("4111111").Data}}, []int{1, 0}},
		{"tokens in another order", []string{"tok_a1", "tok_b1"}, []Result{{BIN: "tok_b"}, {BIN: "tok_a"}}, []int{1, 0}},
		{"a token's card, which names a BIN too", []string{"411111", "tok_a"}, []Result{{BIN: "411111", Data: echoed("tok_a").Data}, {BIN: "tok_a"}}, []int{-1, 0}},
		{"a token twice, the second with another's BIN", []string{"tok_a", "411111"}, []Result{echoed("tok_a"), {BIN: "411111", Data: echoed("tok_a").Data}}, []int{0, -1}},
		{"a token behind a card of nobody", []string{"tok_a", "tok_b"}, []Result{{Data: &Data{Card: &Card{}}}, echoed("tok_a")}, []int{1, -1}},
		{"tokens, one with a BIN and one with a longer name", []string{"tok_a1", "tok_b1"}, []Result{{BIN: "411111"}, {BIN: "tok_b1x"}}, []int{-1, -1}},
		{"longer echo, one left out", []string{"411111", "422222"}, []Result{{BIN: "41111100"}}, []int{-1, -1}},
		{"longer echo with the range, one left out", []string{"411111", "422222"}, []Result{ranged("41111100", "41111100", "41111199")}, []int{-1, -1}},
		{"longer echo, and an error of nobody", []string{"411111", "422222"}, []Result{{BIN: "41111100"}, {Error: "a"}}, []int{-1, -1}},
		{"plain once another is matched", []string{"41110000", "41112222", "4111111122"}, []Result{{BIN: "41110000"}, {BIN: "4111"}, {BIN: "41111111"}, {BIN: "411"}}, []int{0, 1, 2}},
		{"longer echo at another's place", []string{"411111", "tok_a"}, []Result{{}, {BIN: "41111100"}}, []int{-1, -1}},
		{"of another request, but in range", []string{"47777777"}, []Result{ranged("477777", "47777770", "47777777")}, []int{0}},
		{"another token's", []string{"tok_a1"}, []Result{{BIN: "tok_b"}}, []int{-1}},
		{"answered for a part of it", []string{"40000"}, []Result{ranged("400000", "40000000", "40000000")}, []int{0}},
		{"another card's", []string{"411111"}, []Result{{BIN: "555555"}}, []int{-1}},
		{"masked, in order", []string{"4111111111111111", "4222222222222222"}, []Result{echoed("411111******1111"), echoed("422222******2222")}, []int{0, 1}},
		{"masked, in another order", []string{"4000021111111111", "5111112222222222"}, []Result{echoed("511111******2222"), echoed("400002******1111")}, []int{1, 0}},
		{"masked, in bin", []string{"4000021111111111", "5111112222222222"}, []Result{{BIN: "511111xxxxxx2222"}, {BIN: "400002xxxxxx1111"}}, []int{1, 0}},
		{"masked and grouped", []string{"4000021111111111", "5111112222222222"}, []Result{echoed("5111 11** **** 2222"), echoed("4000-02XX-XXXX-1111")}, []int{1, 0}},
		{"masked to another length", []string{"4000021111111111", "5111112222222222"}, []Result{echoed("511111...2222"), echoed("400002****1111")}, []int{1, 0}},
		{"shortened in pan_or_token", []string{"4000021111111111", "5111112222222222"}, []Result{echoed("511111"), echoed("400002")}, []int{1, 0}},
		{"with a mark behind", []string{"4000021111111111", "5111112222222222"}, []Result{echoed("5111112222222222X"), echoed("4000021111111111X")}, []int{1, 0}},
		{"last four", []string{"4000021111111111", "5111112222222222"}, []Result{echoed("2222"), echoed("****1111")}, []int{1, 0}},
		{"last four in bin", []string{"4000021111111111", "5111112222222222"}, []Result{{BIN: "2222"}, {BIN: "1111"}}, []int{1, 0}},
		{"last four of both, by position", []string{"4000021111111111", "5111112222221111"}, []Result{echoed("1111"), echoed("1111")}, []int{0, 1}},
		{"masked alike, by position", []string{"4111110000001111", "4111119999991111"}, []Result{echoed("411111******1111"), echoed("411111******1111")}, []int{0, 1}},
		{"masked alike, one left out", []string{"4111110000001111", "4111119999991111"}, []Result{echoed("411111******1111")}, []int{-1, -1}},
		{"a mask of nobody", []string{"4111111111111111"}, []Result{echoed("422222******2222")}, []int{-1}},
		{"a mask of nobody, though the BIN fits", []string{"4111111111111111"}, []Result{{BIN: "411111", Data: echoed("411111******2222").Data}}, []int{-1}},
		{"last four of nobody", []string{"4111111111111111", "4222222222222222"}, []Result{echoed("3333"), echoed("4444")}, []int{-1, -1}},
		{"wholly masked, by position", []string{"4111111111111111", "4222222222222222"}, []Result{echoed("****"), echoed("****")}, []int{0, 1}},
		{"a BIN, by a masked card number", []string{"45717360", "41111111"}, []Result{echoed("457173**********"), echoed("411111**********")}, []int{0, 1}},
		{"a BIN, by a masked card number at another's place", []string{"45717360", "41111111"}, []Result{echoed("411111**********"), echoed("457173**********")}, []int{1, 0}},
		{"masked tokens", []string{"tok_1234567890", "tok_abcdefghij"}, []Result{echoed("tok_****ghij"), echoed("tok_****7890")}, []int{1, 0}},
		{"another token's mask", []string{"tok_1234567890"}, []Result{echoed("tok_****ghij")}, []int{-1}},
		{"tokens, all called so", []string{"tok_a1", "tok_b1"}, []Result{{BIN: "411111", Data: echoed("TOKEN").Data}, {BIN: "422222", Data: echoed("TOKEN").Data}}, []int{0, 1}},
		{"one token, called so", []string{"tok_a1"}, []Result{echoed("Network token")}, []int{0}},
		{"card numbers, all called so", []string{"4111111111111111", "4222222222222222"}, []Result{{BIN: "422222", Data: echoed("PAN").Data}, {BIN: "411111", Data: echoed("PAN").Data}}, []int{1, 0}},
		{"a token that begins with a kind", []string{"4111111111111111", "PAN_1"}, []Result{{BIN: "411111", Data: echoed("PAN").Data}, {BIN: "422222", Data: echoed("PAN_1").Data}}, []int{0, 1}},
		{"another card number", []string{"4111111111111111", "4222222222222222"}, []Result{echoed("4222222222222223"), echoed("4111111111111112")}, []int{-1, -1}},
		{"a number in place of the card's, under its BIN", []string{"4111111111111111"}, []Result{{BIN: "411111", Data: echoed("9222222222221111").Data}}, []int{0}},
		{"tokens for card numbers, by position", []string{"4111111111111111", "4222222222222222"}, []Result{echoed("tok_a"), echoed("tok_b")}, []int{0, 1}},
		{"card numbers for tokens, by position", []string{"tok_a", "tok_b"}, []Result{echoed("411111******1111"), echoed("422222******2222")}, []int{0, 1}},
		{"grouped otherwise", []string{"4111111111111111", "4222222222222222"}, []Result{echoed("4222 2222 2222 2222"), echoed("4111-1111-1111-1111")}, []int{1, 0}},
		{"in the upper half of its range", []string{"4225095"}, []Result{ranged("", "4225090000000000000", "4225099999999999999")}, []int{0}},
		{"of a range that is none", []string{"422509"}, []Result{ranged("", "4111119", "4111110")}, []int{0}},
		{"of a range that is no number", []string{"422509"}, []Result{ranged("", "41111o", "411111")}, []int{0}},
		{"longer than the last number of its range", []string{"4111111111111111"}, []Result{ranged("", "41111110", "41111111")}, []int{0}},
		{"out of its range", []string{"4111111111111111"}, []Result{ranged("", "555555", "555555")}, []int{-1}},
	}
	for _, tt := range tests {
		if got := correlate(tt.sent, tt.items); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Random services shorten what they echo, leave items out, add other and empty items, and put
// errors anywhere. No card gets the item of another card, and a card that an item names exactly
// gets that item.
func TestCorrelateGivesNoCardAnother(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	named, unanswered, requests, batches := 0, 0, 0, 20_000
	for range batches {
		all := randomBatch(rnd)
		for _, group := range apart(all) {
			requests++
			var sent []string
			for _, l := range group {
				sent = append(sent, l.sent)
			}
			items, exact := randomResponse(rnd, sent)
			found := correlate(sent, items)
			for i, id := range sent {
				if j := found[i]; j >= 0 && items[j].hasCard() && items[j].Data.Card.CardBrand != id {
					t.Fatalf("%s of %q got the item of %s: %v", id, sent, items[j].Data.Card.CardBrand, found)
				} else if exact[id] {
					if named++; j < 0 || !items[j].hasCard() {
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
			all = append(all, &lookup{sent: "PANOPTIC"})
		}
		for _, group := range apart(all) {
			var sent []string
			var items []Result
			for _, l := range group {
				sent = append(sent, l.sent)
				items = append(items, randomEcho(rnd, l.sent, group[rnd.IntN(len(group))].sent))
			}
			if i := rnd.IntN(8 * len(items)); i < len(items) {
				items[0], items[i] = items[i], items[0]
			}
			open := func() *correlation {
				return &correlation{sent: sent, items: items, found: slices.Repeat([]int{-1}, len(sent)), taken: make([]bool, len(items))}
			}
			if c := open(); c.inOrder(c.isNamed) && len(sent) > 1 {
				inOrder++
			}
			slow := open()
			slow.byName()
			slow.compare()
			slow.byElimination()
			slow.byPosition()
			if found := correlate(sent, items); !slices.Equal(found, slow.found) {
				t.Fatalf("%q with %v: %v, in order %v", sent, items, slow.found, found)
			}
		}
	}
	if inOrder < 2000 {
		t.Errorf("%d responses were in order", inOrder)
	}
}

// randomEcho is an item for an identifier: its BIN shortened, and perhaps with a range, at
// times that of another identifier, a kind, the whole identifier, or a mask of it.
func randomEcho(rnd *rand.Rand, id, other string) Result {
	card := &Card{}
	switch size := rnd.IntN(20); {
	case size < 12: // digits that its range has in common
		if rnd.IntN(8) > 0 {
			other = id
		}
		common := other[:min(len(other), max(4, size))]
		card.BINMin, card.BINMax = common+strings.Repeat("0", 16-len(common)), common+strings.Repeat("9", 16-len(common))
	case size < 16:
	case size < 18:
		card.PANOrToken = NewIdentifier([]string{"PAN", "TOKEN", "PANOPTIC"}[rnd.IntN(3)])
	case size == 18:
		card.PANOrToken = NewIdentifier(id[:4] + strings.Repeat("*", len(id)-6) + id[len(id)-2:])
	default:
		card.PANOrToken = NewIdentifier(id)
	}
	return Result{BIN: id[:min(len(id), 5+rnd.IntN(8))], Data: &Data{Card: card}}
}

func randomBatch(rnd *rand.Rand) (batch []*lookup) {
	ids := map[string]bool{}
	for range 1 + rnd.IntN(12) {
		var id strings.Builder
		fmt.Fprintf(&id, "4000%02d", rnd.IntN(6))
		for range rnd.IntN(3) { // levels
			fmt.Fprintf(&id, "%0*d", 2+rnd.IntN(3), rnd.IntN(6))
		}
		ids[id.String()] = true
	}
	for id := range ids {
		batch = append(batch, &lookup{sent: id})
	}
	slices.SortFunc(batch, func(a, b *lookup) int { return strings.Compare(a.sent, b.sent) })
	rnd.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
	return batch
}

func randomResponse(rnd *rand.Rand, sent []string) (items []Result, exact map[string]bool) {
	exact = map[string]bool{}
	var errors []Result
	style, shortens := rnd.IntN(4), rnd.IntN(2) == 0
	for _, id := range sent {
		item := Result{BIN: id, Data: &Data{Card: &Card{CardBrand: id}}}
		switch n := rnd.IntN(10); {
		case n < 5:
			exact[id] = true
			items = append(items, item)
		case n < 7 && shortens:
			item.BIN = id[:min(len(id), 6)]
			exact[id] = item.BIN == id
			items = append(items, item)
		case n < 8:
			errors = append(errors, Result{Error: "unknown"})
		}
	}
	for range rnd.IntN(3) {
		stranger := [...]Result{{}, {BIN: "999999", Data: &Data{Card: &Card{CardBrand: "stranger"}}}, {Error: "one card could not be found"}}[rnd.IntN(3)]
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

// No identifier of a group begins with another one, and there are no more groups than needed.
func TestApart(t *testing.T) {
	for want, ids := range map[int][]string{
		1: {"400000", "400001", "tok"}, 2: {"400000", "40000001", "40000002", "411111"}, 3: {"4000001111", "400000", "40000011", "5"},
	} {
		var lookups []*lookup
		for _, id := range ids {
			lookups = append(lookups, &lookup{sent: id})
		}
		groups, n := apart(lookups), 0
		for _, group := range groups {
			n += len(group)
			for _, a := range group {
				for _, b := range group {
					if a != b && strings.HasPrefix(a.sent, b.sent) {
						t.Errorf("%s and %s share a request", a.sent, b.sent)
					}
				}
			}
		}
		if len(groups) != want || n != len(ids) {
			t.Errorf("%q: %d groups of %d identifiers, want %d", ids, len(groups), n, want)
		}
	}
}
