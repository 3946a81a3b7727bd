package sandbox

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
)

// SyntheticRange returns the leading digits that all card numbers of a range of
// the synthetic data set share, for an identifier of six digits or more. Ranges
// fill the number space without gaps: of the six-digit prefixes, a third is one
// range each, and the others are divided by 7, 8, 9 or 10 digits.
func SyntheticRange(card string) string {
	depths := [...]int{6, 6, 6, 7, 7, 8, 8, 9, 10}
	depth := depths[hash(card[:6])%uint64(len(depths))]
	if missing := depth - len(card); missing > 0 {
		card += strings.Repeat("0", missing)
	}
	return card[:depth]
}

// SyntheticCard makes up the item of an identifier: one of the built-in cards,
// issued by one of some hundred banks, in the identifier's synthetic range. It
// returns nil for what is no number of six digits or more. It is the same every
// time, and so can answer millions of cards.
func SyntheticCard(card string) json.RawMessage {
	if len(card) < 6 || len(card) > panDigits || strings.Trim(card, "0123456789") != "" {
		return nil
	}
	prefix := SyntheticRange(card)
	h := hash(prefix)
	programs := parsePrograms()
	return programs[h%uint64(len(programs))].item(prefix, h/uint64(len(programs))%300)
}

const panDigits = 19

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// A program is a built-in card with places for a range and a bank.
type program struct {
	item func(prefix string, bank uint64) json.RawMessage
}

var parsePrograms = sync.OnceValue(func() []program {
	var programs []program
	cards := parseCards()
	for _, bin := range slices.Sorted(maps.Keys(cards)) {
		plain := string(cards[bin].plain)
		low := bin + strings.Repeat("0", panDigits-len(bin))
		high := bin + strings.Repeat("9", panDigits-len(bin))
		programs = append(programs, program{func(prefix string, bank uint64) json.RawMessage {
			return json.RawMessage(strings.NewReplacer(
				`"bin":"`+bin+`"`, `"bin":"`+prefix[:6]+`"`,
				low, prefix+strings.Repeat("0", panDigits-len(prefix)),
				high, prefix+strings.Repeat("9", panDigits-len(prefix)),
				`"bank":{"name":"`, fmt.Sprintf(`"bank":{"name":"%d `, bank),
			).Replace(plain))
		}})
	}
	return programs
})
