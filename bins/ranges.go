package bins

import (
	"iter"
	"math/bits"
	"slices"
)

// rangeDigits is the length of the numbers that bound a range.
const rangeDigits = 19

// bounds returns the item's range as numbers of 19 digits, and whether it is
// one: digits only, of one length, the lower not above the higher.
func (r *Result) bounds() (low, high uint64, ok bool) {
	if r.Data == nil || r.Data.Card == nil {
		return 0, 0, false
	}
	first, last := r.Data.Card.BINMin, r.Data.Card.BINMax
	if len(first) != len(last) || len(first) > rangeDigits || !isDigits(first) || !isDigits(last) {
		return 0, 0, false
	}
	low, _ = span(first)
	_, high = span(last)
	return low, high, low <= high
}

// contains tells whether every card number that begins with id lies in a range.
func contains(low, high uint64, id string) bool {
	first, last := span(id)
	return low <= first && last <= high
}

// span returns the first and the last of the 19-digit numbers that begin with
// digits, of which there are at most 19. The greatest such number fits.
func span(digits string) (first, last uint64) {
	for i := range len(digits) {
		first = first*10 + uint64(digits[i]-'0')
	}
	width := powers[rangeDigits-len(digits)]
	first *= width
	return first, first + (width - 1)
}

var powers = func() (p [rangeDigits + 1]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// A rangeIndex finds the narrowest range around an identifier. Ranges are kept
// by their first six digits; the few that span several of those are kept apart.
type rangeIndex struct {
	pages [1000]*[1000]*bucket // by the first three digits, and the next three
	wide  bucket
}

const bucketWidth = 1e13 // numbers that share their first six digits

// A bucket holds ranges by their widths, the narrow ones first, so that a wide one
// around many narrow ones slows no search down.
type bucket []*level

// A level holds ranges of about one width in order of their lower bounds. The
// bounds lie side by side because the search reads them and little else.
type level struct {
	magnitude   int
	lows, highs []uint64
	entries     []*entry
	overlapping bool // some range overlaps another
}

// magnitude grows by one as widths grow eightfold.
func (e *entry) magnitude() int { return bits.Len64(e.width()) / 3 }

// find returns the narrowest range that holds all of first to last.
func (x *rangeIndex) find(first, last uint64) *entry {
	best := x.wide.narrowest(first, last)
	prefix := first / bucketWidth
	page := x.pages[prefix/1000]
	if page == nil || page[prefix%1000] == nil {
		return best
	}
	if e := page[prefix%1000].narrowest(first, last); e != nil && (best == nil || e.width() < best.width()) {
		return e
	}
	return best
}

func (b bucket) narrowest(first, last uint64) *entry {
	for _, l := range b {
		if e := l.narrowest(first, last); e != nil {
			return e
		}
	}
	return nil
}

func (l *level) narrowest(first, last uint64) (best *entry) {
	i := lastAtMost(l.lows, first)
	if !l.overlapping {
		if i < 0 || last > l.highs[i] {
			return nil
		}
		return l.entries[i]
	}
	for ; i >= 0 && (first-l.lows[i])>>(3*l.magnitude+3) == 0; i-- {
		if e := l.entries[i]; last <= e.high && (best == nil || e.width() < best.width()) {
			best = e
		}
	}
	return best
}

// lastAtMost returns the index of the last of the sorted values that is at most
// v, or -1. Nothing in its loop depends on a branch that the processor would have
// to guess, as it does in slices.BinarySearch.
func lastAtMost(values []uint64, v uint64) int {
	if len(values) == 0 || v < values[0] {
		return -1
	}
	i, n := 0, len(values)
	for n > 1 {
		half := n / 2
		middle := i + half
		if values[middle] <= v {
			i = middle
		}
		n -= half
	}
	return i
}

func (e *entry) width() uint64 { return e.high - e.low }

// insert adds e, and returns an entry with the same bounds that it replaced and
// whether e contradicts a range that it overlaps.
func (x *rangeIndex) insert(e *entry) (replaced *entry, conflict bool) {
	own := x.bucket(e)
	l := own.level(e.magnitude())
	for b := range x.around(e, own) {
		for other := range b.overlaps(e) {
			conflict = conflict || !other.same(e)
			if other.low == e.low && other.high == e.high {
				replaced = other
			} else if other.magnitude() == l.magnitude {
				l.overlapping = true
			}
		}
	}
	if replaced != nil {
		l.remove(replaced)
	}
	at, _ := slices.BinarySearch(l.lows, e.low)
	l.lows, l.highs = slices.Insert(l.lows, at, e.low), slices.Insert(l.highs, at, e.high)
	l.entries = slices.Insert(l.entries, at, e)
	return replaced, conflict
}

// around yields the buckets that may hold what overlaps e.
func (x *rangeIndex) around(e *entry, own *bucket) iter.Seq[*bucket] {
	return func(yield func(*bucket) bool) {
		if !yield(&x.wide) {
			return
		}
		if own != &x.wide {
			yield(own)
			return
		}
		for prefix := e.low / bucketWidth; prefix <= e.high/bucketWidth; prefix++ {
			page := x.pages[prefix/1000]
			if page == nil {
				prefix += 999 - prefix%1000
			} else if b := page[prefix%1000]; b != nil && !yield(b) {
				return
			}
		}
	}
}

// overlaps yields what overlaps e.
func (b bucket) overlaps(e *entry) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, l := range b {
			i := 0
			if !l.overlapping {
				i = max(0, lastAtMost(l.lows, e.low))
			}
			for ; i < len(l.lows) && l.lows[i] <= e.high; i++ {
				if l.highs[i] >= e.low && !yield(l.entries[i]) {
					return
				}
			}
		}
	}
}

func (x *rangeIndex) remove(e *entry) {
	x.bucket(e).level(e.magnitude()).remove(e)
}

func (l *level) remove(e *entry) {
	if i := slices.Index(l.entries, e); i >= 0 {
		l.lows, l.highs = slices.Delete(l.lows, i, i+1), slices.Delete(l.highs, i, i+1)
		l.entries = slices.Delete(l.entries, i, i+1)
	}
}

// level finds or makes the level of a magnitude.
func (b *bucket) level(magnitude int) *level {
	i, found := slices.BinarySearchFunc(*b, magnitude, func(l *level, m int) int { return l.magnitude - m })
	if !found {
		*b = slices.Insert(*b, i, &level{magnitude: magnitude})
	}
	return (*b)[i]
}

// bucket returns where a range belongs.
func (x *rangeIndex) bucket(e *entry) *bucket {
	prefix := e.low / bucketWidth
	if prefix != e.high/bucketWidth {
		return &x.wide
	}
	page := &x.pages[prefix/1000]
	if *page == nil {
		*page = new([1000]*bucket)
	}
	b := &(*page)[prefix%1000]
	if *b == nil {
		*b = &bucket{}
	}
	return *b
}
