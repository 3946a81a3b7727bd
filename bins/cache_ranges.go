package bins

import (
	"iter"
	"strconv"
	"strings"
)

// rangeDigits is the length of the numbers that bound a range.
const rangeDigits = 19

// A span is the numbers of 19 digits from the first to the last, if it is one at all.
type span struct {
	first, last uint64
	ok          bool
}

// spanOf returns the numbers that begin with digits, if those are 1 to 19 digits. The
// greatest such number fits.
func spanOf(digits string) span {
	number, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || len(digits) > rangeDigits {
		return span{}
	}
	width := powers[rangeDigits-len(digits)]
	return span{number * width, number*width + (width - 1), true}
}

// bounds returns the item's range, if its bounds are digits only, of one length, the
// lower not above the higher.
func (r *Result) bounds() span {
	if !r.hasCard() {
		return span{}
	}
	card := r.Data.Card
	low, high := spanOf(card.BINMin), spanOf(card.BINMax)
	ok := low.ok && high.ok && len(card.BINMin) == len(card.BINMax) && low.first <= high.last
	return span{low.first, high.last, ok}
}

// holds tells whether all of the other span lies in this one.
func (s span) holds(other span) bool {
	return s.ok && other.ok && s.first <= other.first && other.last <= s.last
}

// isApart tells whether no number lies in both spans.
func (s span) isApart(other span) bool {
	return s.ok && other.ok && (s.last < other.first || other.last < s.first)
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// powers of ten.
var powers = [rangeDigits + 1]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// A rangeIndex finds the narrowest range around an identifier. It cuts each range
// into the fewest prefixes that make it up, which is a single one for most ranges
// of card services, and finds an identifier by the prefixes that it begins with.
// The work so depends on the number of digits and never on the number of ranges or
// how they lie.
//
// A prefix leads to the narrowest range that has it, and to none when that range
// is removed: a wider one around it is then asked for once more.
type rangeIndex [rangeDigits + 1]map[uint64]*entry // by number of digits and prefix

// prefixes yields the prefixes that make up a range: 342 at most.
func prefixes(low, high uint64) iter.Seq2[int, uint64] {
	return func(yield func(digits int, prefix uint64) bool) {
		for digits := rangeDigits; ; digits = rangeDigits {
			// The shortest prefix that begins at low and ends by high.
			for digits > 0 && low%powers[rangeDigits-digits+1] == 0 && high-low >= powers[rangeDigits-digits+1]-1 {
				digits--
			}
			width := powers[rangeDigits-digits]
			if !yield(digits, low/width) || high-low < width {
				return
			}
			low += width
		}
	}
}

// find returns the narrowest range that holds every number that begins with so many
// digits of first, and another that does so and states something else, if any.
func (x *rangeIndex) find(first uint64, digits int) (best, contradicted *entry) {
	for n := digits; n >= 0; n-- {
		if len(x[n]) == 0 {
			continue
		}
		e := x[n][first/powers[rangeDigits-n]]
		switch {
		case e == nil || e == best:
		case best == nil:
			best = e
		default:
			if e.width() < best.width() {
				best, e = e, best
			}
			if !best.same(e) {
				contradicted = e
			}
		}
	}
	return best, contradicted
}

func (e *entry) width() uint64 { return e.high - e.low }

// insert adds e, and returns the entry of the same range that it replaces, if any.
func (x *rangeIndex) insert(e *entry) (replaced *entry) {
	for n, prefix := range prefixes(e.low, e.high) {
		if x[n] == nil {
			x[n] = map[uint64]*entry{}
		}
		other := x[n][prefix]
		if other == nil || other.width() >= e.width() {
			x[n][prefix] = e
		}
		if other != nil && other.low == e.low && other.high == e.high {
			replaced = other
		}
	}
	return replaced
}

func (x *rangeIndex) remove(e *entry) {
	for n, prefix := range prefixes(e.low, e.high) {
		if x[n][prefix] == e {
			delete(x[n], prefix)
		}
	}
}
