package bins

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestRangeIndexFindsTheNarrowest compares the index with a look at every range,
// while ranges come, go and replace each other.
func TestRangeIndexFindsTheNarrowest(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	digits := func(n int) string { return fmt.Sprintf("4%0*d", n-1, rnd.IntN(4000)) }
	for round := range 50 {
		index := &rangeIndex{}
		var all []*entry
		for range 100 {
			e := &entry{message: string(rune('a' + rnd.IntN(2)))}
			e.low, _ = span(digits(6 + rnd.IntN(4)))
			e.high = e.low + rnd.Uint64N(3*bucketWidth) + 1
			if rnd.IntN(2) == 0 {
				_, e.high = span(digits(8))
			}
			if e.low > e.high {
				continue
			}
			contradicted := slices.ContainsFunc(all, func(other *entry) bool {
				return other.low <= e.high && e.low <= other.high && other.message != e.message
			})
			replaced, conflict := index.insert(e)
			if conflict != contradicted {
				t.Fatalf("round %d: %+v conflicts: %v, want %v", round, e, conflict, contradicted)
			}
			if i := position(all, replaced); i >= 0 {
				all = append(all[:i], all[i+1:]...)
			}
			all = append(all, e)
			if len(all) > 20 && rnd.IntN(2) == 0 {
				i := rnd.IntN(len(all))
				index.remove(all[i])
				all = append(all[:i], all[i+1:]...)
			}
			first, last := span(digits(6 + rnd.IntN(12)))
			var want *entry
			for _, e := range all {
				if e.low <= first && last <= e.high && (want == nil || e.width() < want.width()) {
					want = e
				}
			}
			got := index.find(first, last)
			if (got == nil) != (want == nil) || got != nil && got.width() != want.width() {
				t.Fatalf("round %d: %d to %d found %+v, want %+v", round, first, last, got, want)
			}
		}
	}
}

func position(all []*entry, e *entry) int {
	for i := range all {
		if all[i] == e {
			return i
		}
	}
	return -1
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
		low, high, ok := item(tt.low, tt.high).bounds()
		if ok != tt.ok || ok && low > high {
			t.Errorf("%s to %s: %d to %d, %v", tt.low, tt.high, low, high, ok)
		}
	}
	if _, _, ok := (&Result{}).bounds(); ok {
		t.Error("an item without a card has a range")
	}
	low, high, _ := item("42250900", "42250999").bounds()
	for id, want := range map[string]bool{
		"42250900": true, "4225091234567890": true, "422509": true, "42250": false, "4225100": false,
	} {
		if contains(low, high, id) != want {
			t.Errorf("%s in the range: %v", id, !want)
		}
	}
}

func TestConflictingRanges(t *testing.T) {
	item := func(low, high, brand string) *Result {
		return &Result{Data: &Data{Card: &Card{BINMin: low, BINMax: high, CardBrand: brand}}}
	}
	m := NewMemoryCache(CacheOptions{})
	keep := func(id string, r *Result) { m.keep(m.pack(cacheKey{id, 'd'}, r, true, time.Hour)) }
	brand := func(id string) string {
		e := m.find(cacheKey{id, 'd'}, true)
		if e == nil {
			return ""
		}
		return e.result(id).Data.Card.CardBrand
	}

	keep("4111111111111111", item("411111", "411111", "wide"))
	keep("4111112222222222", item("411111", "411111", "wide"))
	if m.Conflicts() != 0 || m.Len() != 1 {
		t.Errorf("the same answer twice: %d conflicts, %d entries", m.Conflicts(), m.Len())
	}
	keep("4111119912345678", item("41111199", "41111199", "narrow"))
	if m.Conflicts() != 1 || brand("4111119900000000") != "narrow" || brand("4111110000000000") != "wide" {
		t.Errorf("nested: %d conflicts, %s in %s", m.Conflicts(), brand("4111119900000000"), brand("4111110000000000"))
	}
	keep("4111119912345678", item("41111199", "41111199", "changed"))
	if m.Conflicts() != 2 || m.Len() != 2 || brand("4111119900000000") != "changed" {
		t.Errorf("replaced: %d conflicts, %d entries", m.Conflicts(), m.Len())
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
		low, high := span(fmt.Sprintf("4%05d%03d", i/200, i%200))
		sorted[i] = &entry{low: low, high: high}
		index.insert(sorted[i])
	}
	ids := make([]uint64, 1<<16)
	for i := range ids {
		n := rand.IntN(ranges)
		ids[i], _ = span(fmt.Sprintf("4%05d%03d0000000", n/200, n%200))
	}
	run := func(name string, find func(first, last uint64) *entry) {
		b.Run(name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				first := ids[i%len(ids)]
				if find(first, first+999) == nil {
					b.Fatal("not found")
				}
				i++
			}
		})
	}
	run("index", index.find)
	run("binary-search", func(first, last uint64) *entry {
		at, _ := slices.BinarySearchFunc(sorted, first, func(e *entry, first uint64) int { return cmp.Compare(e.high, first) })
		if e := sorted[at]; e.low <= first && last <= e.high {
			return e
		}
		return nil
	})
}
