package bins

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRangeIndexFindsTheNarrowest compares the index with a look at every range,
// while ranges come and replace each other. Once ranges go, one around them may have
// to be asked for again, but none is found that does not hold the identifier.
func TestRangeIndexFindsTheNarrowest(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	digits := func(n int) string { return fmt.Sprintf("4%0*d", n-1, rnd.IntN(4000)) }
	for round := range 100 {
		index := &rangeIndex{}
		var all []*entry
		removed := false
		for range 100 {
			e := &entry{message: string(rune('a' + rnd.IntN(2)))}
			e.low = spanOf(digits(6 + rnd.IntN(4))).first
			e.high = e.low + rnd.Uint64N(3e13) + 1
			if rnd.IntN(2) == 0 {
				e.high = spanOf(digits(8)).last
			}
			if e.low > e.high {
				continue
			}
			replaced := index.insert(e)
			all = slices.DeleteFunc(append(all, e), func(e *entry) bool { return e == replaced })
			if len(all) > 20 && round%2 == 0 && rnd.IntN(2) == 0 {
				removed = true
				i := rnd.IntN(len(all))
				index.remove(all[i])
				all = slices.Delete(all, i, i+1)
			}
			id := digits(6 + rnd.IntN(12))
			first, last := spanOf(id).first, spanOf(id).last
			var want, doubt *entry
			for _, e := range all {
				if e.low <= first && last <= e.high && (want == nil || e.width() < want.width()) {
					want = e
				}
			}
			for _, e := range all {
				if want != nil && e.low <= first && last <= e.high && e.message != want.message {
					doubt = e
				}
			}
			got, contradicted := index.find(first, len(id))
			switch {
			case got != nil && (first < got.low || got.high < last || !slices.Contains(all, got)):
				t.Fatalf("round %d: %d to %d found %+v", round, first, last, got)
			case removed:
			case (got == nil) != (want == nil) || got != nil && got.width() != want.width():
				t.Fatalf("round %d: %d to %d found %+v, want %+v", round, first, last, got, want)
			case contradicted != nil && doubt == nil:
				t.Fatalf("round %d: %d to %d is contradicted by %+v", round, first, last, contradicted)
			}
		}
		for _, e := range all {
			index.remove(e)
		}
		for n := range index {
			if len(index[n]) > 0 {
				t.Fatalf("round %d: %d prefixes of %d digits are left", round, len(index[n]), n)
			}
		}
	}
}

// TestPrefixesMakeUpTheRange: they lie side by side, from its first number to its last.
func TestPrefixesMakeUpTheRange(t *testing.T) {
	const greatest = 9_999_999_999_999_999_999
	for _, bounds := range [][2]uint64{
		{0, 0}, {0, greatest}, {1, greatest - 1}, {greatest, greatest}, {4225090000000000000, 4225099999999999999},
		{4225090000000000000, 4225094999999999999}, {4225091234567890123, 4987654321098765432},
	} {
		next, count := bounds[0], 0
		for digits, prefix := range prefixes(bounds[0], bounds[1]) {
			width := powers[rangeDigits-digits]
			if prefix*width != next {
				t.Fatalf("%v: %d of %d digits begins at %d, not at %d", bounds, prefix, digits, prefix*width, next)
			}
			next += width
			count++
		}
		if next != bounds[1]+1 || count > 342 {
			t.Errorf("%v: %d prefixes end before %d", bounds, count, next)
		}
	}
}

func TestBounds(t *testing.T) {
	item := func(low, high string) *Result {
		return &Result{Data: &Data{Card: &Card{BINMin: low, BINMax: high}}}
	}
	tests := []struct {
		low, high string
		ok        bool
	}{
		{"4225090000000000000", "4225099999999999999", true},
		{"9999999999999999999", "9999999999999999999", true}, // beyond int64
		{"422509", "422509", true},
		{"4225099999999999999", "4225090000000000000", false},
		{"422509", "4225099", false},
		{"", "", false},
		{"42250900000000000000", "42250999999999999999", false},
		{"4225o9", "422509", false},
	}
	for _, tt := range tests {
		bounds := item(tt.low, tt.high).bounds()
		if bounds.ok != tt.ok || bounds.ok && bounds.first > bounds.last {
			t.Errorf("%s to %s: %+v", tt.low, tt.high, bounds)
		}
	}
	if (&Result{}).bounds().ok {
		t.Error("an item without a card has a range")
	}
	bounds := item("42250900", "42250999").bounds()
	for id, want := range map[string]bool{
		"42250900": true, "4225091234567890": true, "422509": true, "42250": false, "4225100": false,
	} {
		if bounds.holds(spanOf(id)) != want {
			t.Errorf("%s in the range: %v", id, !want)
		}
	}
}

func TestConflictingRanges(t *testing.T) {
	item := func(low, high, brand string) *Result {
		return &Result{Data: &Data{Card: &Card{BINMin: low, BINMax: high, CardBrand: brand}}}
	}
	m := NewMemoryCache(CacheOptions{})
	keep := func(id string, r *Result) { m.keep(m.pack(cacheKey{id: id}, r, true)) }
	brand := func(id string) string {
		e := m.find(cacheKey{id: id}, true, 0)
		if e == nil {
			return ""
		}
		return e.result(id).Data.Card.CardBrand
	}

	keep("4111111111111111", item("411111", "411111", "wide"))
	keep("4111112222222222", item("411111", "411111", "wide"))
	if m.Conflicts() != 0 || m.Len() != 1 {
		t.Errorf("the same result twice: %d conflicts, %d entries", m.Conflicts(), m.Len())
	}
	keep("4111119912345678", item("41111199", "41111199", "narrow"))
	if m.Conflicts() != 1 || brand("4111119900000000") != "narrow" || brand("4111110000000000") != "wide" {
		t.Errorf("nested: %d conflicts, %s in %s", m.Conflicts(), brand("4111119900000000"), brand("4111110000000000"))
	}
	keep("4111119912345678", item("41111199", "41111199", "changed"))
	if m.Conflicts() != 2 || m.Len() != 2 || brand("4111119900000000") != "changed" {
		t.Errorf("replaced: %d conflicts, %d entries", m.Conflicts(), m.Len())
	}
	keep("4222220000000000", item("42222299", "42222299", "stray"))
	keep("4222229900000000", item("42222299", "42222299", "narrow"))
	keep("4222220000000000", item("422222", "422222", "wide"))
	if brand("4222229900000000") != "narrow" || m.Conflicts() != 3 {
		t.Errorf("nested in what came later: %d conflicts, %s", m.Conflicts(), brand("4222229900000000"))
	}
	keep("5555550000000000", item("411111", "411111", "stray"))
	if brand("5555550000000000") != "" || brand("4111110000000000") != "wide" {
		t.Error("a range that does not hold the identifier was used")
	}
}

// BenchmarkRangeFind finds one range, beside a binary search, which knows no
// ranges within ranges and takes none in.
func BenchmarkRangeFind(b *testing.B) {
	const ranges = 400_000
	index := &rangeIndex{}
	sorted := make([]*entry, ranges)
	for i := range ranges {
		// 2,000 six-digit prefixes of 200 ranges each.
		numbers := spanOf(fmt.Sprintf("4%05d%03d", i/200, i%200))
		sorted[i] = &entry{low: numbers.first, high: numbers.last}
		index.insert(sorted[i])
	}
	ids := make([]uint64, 1<<16)
	for i := range ids {
		n := rand.IntN(ranges)
		ids[i] = spanOf(fmt.Sprintf("4%05d%03d0000000", n/200, n%200)).first
	}
	run := func(name string, find func(first uint64) *entry) {
		b.Run(name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				first := ids[i%len(ids)]
				if find(first) == nil {
					b.Fatal("not found")
				}
				i++
			}
		})
	}
	run("index", func(first uint64) *entry {
		e, _ := index.find(first, 16)
		return e
	})
	run("binary-search", func(first uint64) *entry {
		at, _ := slices.BinarySearchFunc(sorted, first, func(e *entry, first uint64) int { return cmp.Compare(e.high, first) })
		if e := sorted[at]; e.low <= first && first+999 <= e.high {
			return e
		}
		return nil
	})
}
