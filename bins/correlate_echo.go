package bins

import (
	"strconv"
	"strings"
	"unicode"
)

// A name is an item's bin or pan_or_token. The form of an echo is not documented: it may be
// whole, shortened, masked, or the last four digits.
type name struct {
	text   string // without spaces and dashes; each masked character is a '*'
	head   string // before the first '*'; text, if nothing is masked
	tail   string // after the last '*'
	masked bool
	number bool // all visible characters are digits
}

// lastFour is the shortest end of a card number that counts as its name.
const lastFour = 4

// nameOf parses an item's name or an identifier.
func nameOf(s string) name {
	if isDigits(s) {
		return name{text: s, head: s, number: true}
	}
	text, number := unmarked(s, "*•●#…·.xX")
	if !number {
		if text, _ = unmarked(s, "*•●…"); !strings.Contains(text, "*") {
			return name{text: s, head: s}
		}
	}
	head, rest, masked := strings.Cut(text, "*")
	return name{text: text, head: head, tail: rest[strings.LastIndex(rest, "*")+1:], masked: masked, number: number}
}

// unmarked writes each masked character as '*'. It reports whether all other characters are
// digits and separators, and then drops the separators.
func unmarked(s, marks string) (text string, number bool) {
	number = s != ""
	text = strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(marks, r):
			return '*'
		case r < '0' || r > '9':
			number = number && (r == ' ' || r == '-')
		}
		return r
	}, s)
	if number {
		text = strings.NewReplacer(" ", "", "-", "").Replace(text)
	}
	return text, number
}

// rate compares the name with an identifier that was sent.
func (n name) rate(id name) evidence {
	switch {
	case n.text == "" || n.masked && n.head+n.tail == "":
		return silent
	case n.number != id.number:
		return otherKind
	case n.text == id.text, n.head == id.text: // nothing or only marks follow
		return names
	case !n.masked && strings.HasPrefix(id.text, n.text):
		return begins
	case !n.masked && strings.HasPrefix(n.text, id.text):
		return extends
	case !n.masked:
		if n.number && len(n.text) >= lastFour && len(n.text) < cardNumberDigits && len(id.text) >= cardNumberDigits && strings.HasSuffix(id.text, n.text) {
			return ends
		}
		if isWord(n.text) { // the kind of what was sent, such as "TOKEN"
			return silent
		}
		return differs
	case len(n.text) > len(id.text) && n.covers(id.text):
		return extends
	case len(n.text) == len(id.text):
		if !n.covers(id.text) {
			return contradicts
		}
	case len(n.head)+len(n.tail) > len(id.text) || !strings.HasPrefix(id.text, n.head) || !strings.HasSuffix(id.text, n.tail):
		return contradicts
	}
	switch {
	case n.tail == "":
		return begins
	case n.head == "":
		return ends
	}
	return names
}

// covers reports whether the visible characters of the name match the identifier, up to the
// identifier's length.
func (n name) covers(id string) bool {
	for i := range len(id) {
		if n.text[i] != '*' && n.text[i] != id[i] {
			return false
		}
	}
	return true
}

// isFor reports whether the name is a mask of an identifier, of the same length.
func (n name) isFor(id string) bool { return n.masked && len(n.text) == len(id) && n.covers(id) }

// rangeDigits is the length of the numbers that bound a range.
const rangeDigits = 19

// A span is a range of 19-digit numbers, or none.
type span struct {
	first, last uint64
	ok          bool
}

// spanOf returns the span of the numbers that begin with digits, if there are 1 to 19 digits.
// The largest such number fits into the type.
func spanOf(digits string) span {
	number, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || len(digits) > rangeDigits {
		return span{}
	}
	width := powers[rangeDigits-len(digits)]
	return span{number * width, number*width + (width - 1), true}
}

// bounds returns the item's range, if its bounds are digits of the same length, in ascending
// order.
func (r *Result) bounds() span {
	if !r.hasCard() {
		return span{}
	}
	card := r.Data.Card
	low, high := spanOf(card.BINMin), spanOf(card.BINMax)
	ok := low.ok && high.ok && len(card.BINMin) == len(card.BINMax) && low.first <= high.last
	return span{low.first, high.last, ok}
}

// holds reports whether the other span lies within this one.
func (s span) holds(other span) bool {
	return s.ok && other.ok && s.first <= other.first && other.last <= s.last
}

// isApart reports whether the spans have no number in common.
func (s span) isApart(other span) bool {
	return s.ok && other.ok && (s.last < other.first || other.last < s.first)
}

// isWord reports whether all characters are letters and spaces.
func isWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r != ' ' && !unicode.IsLetter(r) })
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// powers of ten.
var powers = [rangeDigits + 1]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}
