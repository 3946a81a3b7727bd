// Package mask prints card identifiers in the one allowed form, and finds texts that repeat a
// credential or an id.
package mask

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	shown    = 6  // leading digits that may always be seen
	trailing = 4  // trailing digits of a card number that may be seen
	hidden   = 6  // hidden digits of a card number of 12 or 13 digits
	panMin   = 12 // minimum digits of a card number
	panMax   = 19
	binMax   = 8 // digits of the longest BIN in use
)

// Identifier masks a card identifier. A BIN stays as it is. A longer run of digits keeps its
// first six digits; with thirteen digits also the last, and from fourteen the last four.
// Anything else is hidden whole, because it may be a token or a grouped card number.
func Identifier(id string) string {
	digits, last := len(id), trailing
	switch {
	case id == "":
		return ""
	case strings.Trim(id, "0123456789") != "":
		return "****"
	case digits <= binMax:
		return id
	case digits < panMin:
		last = 0
	case digits <= panMin+1:
		last = digits - shown - hidden
	}
	return id[:shown] + strings.Repeat("*", digits-shown-last) + id[digits-last:]
}

// separator matches the characters between the digits of a number, in any script: spaces of
// all kinds, dashes, dots, slashes, underscores and invisible characters.
const separator = `[\p{Z}\p{Pd}\p{Cf}\s._/\\|,·•−-]`

var (
	// run matches twelve or more digits with up to four separators between them.
	run = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\p{Nd}(?:` + separator + `{0,4}\p{Nd}){11,}`)
	})
	// cardNumber matches a number that counts without its check digit. Dots, slashes and the
	// like are not allowed, because addresses, dates and paths contain them.
	cardNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\p{Nd}(?:[ -]?\p{Nd}){11,}`) })
)

// Text masks the card numbers inside a text. Twelve or more digits, in a row or with single
// spaces or hyphens, count as a card number. With other separators, the check digit must be
// right, or the groups must be those of a card.
func Text(s string) string {
	return run().ReplaceAllStringFunc(s, func(found string) string {
		if cardNumber().MatchString(found) {
			return cardNumber().ReplaceAllStringFunc(found, func(number string) string { return Identifier(decimals(number)) })
		}
		if areCard(strings.FieldsFunc(found, func(r rune) bool { return !unicode.IsDigit(r) })) {
			return Identifier(decimals(found))
		}
		return found
	})
}

// decimals returns the decimal digits of a text, unchanged.
func decimals(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

// areCard reports whether neighbouring groups of digits are a card number. They are if the
// groups are those of a card or single digits, or if thirteen or more digits have a right
// check digit. Twelve digits do not count, because too many paths and times would match.
func areCard(groups []string) bool {
	var lengths strings.Builder
	for i, group := range groups {
		fmt.Fprint(&lengths, min(len(group), 9))
		for end := i + 1; end <= len(groups); end++ {
			number := strings.Join(groups[i:end], "")
			if utf8.RuneCountInString(number) > panMax {
				break
			}
			if utf8.RuneCountInString(number) > panMin && CheckDigit(number) {
				return true
			}
		}
	}
	return grouping().MatchString(lengths.String())
}

var grouping = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`444[1-4]|46[45]|1{13}`) })

// MayHoldCardNumber reports whether a code or an id, such as a request id, has a run of
// twelve or more digits without its separators. One UUID in thirty has such a run, so in a
// UUID a part of the run must have a right check digit.
func MayHoldCardNumber(code string) bool {
	isUUID := len(code) == 36 && code[8] == '-' && code[13] == '-' && code[18] == '-' && code[23] == '-' &&
		strings.Count(code, "-") == 4 && strings.Trim(code, "0123456789abcdefABCDEF-") == ""
	for digits := range strings.FieldsFuncSeq(ungrouped(code), func(r rune) bool { return r < '0' || r > '9' }) {
		if len(digits) >= panMin && !isUUID || holdsChecked([]rune(digits), panMin) {
			return true
		}
	}
	return false
}

// HoldsCardNumber reports whether a text may hold a full card number: 13 to 19 digits in a
// row, grouped or not, with a right check digit.
func HoldsCardNumber(text string) bool {
	if CountDigits(text) <= panMin { // as in nearly all texts
		return false
	}
	for digits := range strings.FieldsFuncSeq(ungrouped(text), func(r rune) bool { return !unicode.IsDigit(r) }) {
		if holdsChecked([]rune(digits), panMin+1) {
			return true
		}
	}
	return false
}

// holdsChecked reports whether at least least digits in a row have a right check digit.
func holdsChecked(digits []rune, least int) bool {
	for from := range digits {
		for to := from + least; to <= min(len(digits), from+panMax); to++ {
			if CheckDigit(string(digits[from:to])) {
				return true
			}
		}
	}
	return false
}

// ungrouped removes what may stand between the groups of a number's digits.
func ungrouped(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.Is(unicode.Pd, r) || strings.ContainsRune("_.:/", r) {
			return -1
		}
		return r
	}, text)
}

// CheckDigit reports whether digits can be a whole card number: 12 to 19 digits, the last one
// a right check digit (Luhn). It accepts all digits beyond ASCII.
func CheckDigit(digits string) bool {
	if strings.Trim(digits, "0123456789") != "" {
		return true
	}
	sum, double := 0, false
	for i := len(digits) - 1; i >= 0; i-- {
		d := int(digits[i] - '0')
		if double {
			d = d*2/10 + d*2%10
		}
		sum, double = sum+d, !double
	}
	return panMin <= len(digits) && len(digits) <= panMax && sum%10 == 0
}

// Hide puts a value into a closure, because fmt follows fields and pointers but calls no
// function.
func Hide(value string) func() string { return func() string { return value } }
