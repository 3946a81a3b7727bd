// Package mask holds the one form in which card identifiers are printed, and the rule by
// which a text repeats a credential or an id.
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
	hidden   = 6  // digits of a card number of 12 or 13 that stay hidden
	panMin   = 12 // digits that make a card number
	panMax   = 19
	binMax   = 8 // digits of the longest BIN in use
)

// Identifier masks a card identifier: a BIN stays as it is, a longer run of digits
// keeps its first six, and from fourteen digits on its last four, of thirteen one.
// Anything else may be a token, or a card number in groups, and is hidden whole.
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

// Whatever stands between the digits of one number, in any script: spaces of all
// kinds, dashes, dots, slashes, underscores and what is not seen at all.
const separator = `[\p{Z}\p{Pd}\p{Cf}\s._/\\|,·•−-]`

var (
	// run matches twelve digits and more with a few separators between them.
	run = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\p{Nd}(?:` + separator + `{0,4}\p{Nd}){11,}`)
	})
	// cardNumber matches what is one whether or not its check digit is right: dots,
	// slashes and the like do not count, as they stand in addresses, dates and paths.
	cardNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\p{Nd}(?:[ -]?\p{Nd}){11,}`) })
)

// Text masks the card numbers inside a text. Digits in a row, or with single spaces
// or hyphens, are one from twelve on. With other separators they are one if the check
// digit is right or the groups are those of a card.
func Text(s string) string {
	return run().ReplaceAllStringFunc(s, func(found string) string {
		if cardNumber().MatchString(found) {
			return cardNumber().ReplaceAllStringFunc(found, func(number string) string { return Identifier(Digits(number)) })
		}
		if areCard(strings.FieldsFunc(found, func(r rune) bool { return !unicode.IsDigit(r) })) {
			return Identifier(Digits(found))
		}
		return found
	})
}

// Digits returns the digits of a text, of any script.
func Digits(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

// areCard reports whether neighbours among groups of digits are a card number: they
// are grouped as on a card or one by one, or they are thirteen and more of which the
// check digit is right. With twelve, too many paths and times would be one.
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
// twelve digits or more, separators left out. A UUID has such a run once in thirty
// times, and may hold a card number only if the check digit of a part of it is right.
func MayHoldCardNumber(code string) bool {
	isUUID := len(code) == 36 && code[8] == '-' && code[13] == '-' && code[18] == '-' && code[23] == '-' &&
		strings.Count(code, "-") == 4 && strings.Trim(code, "0123456789abcdefABCDEF-") == ""
	for digits := range strings.FieldsFuncSeq(separators.Replace(code), func(r rune) bool { return r < '0' || r > '9' }) {
		if len(digits) >= panMin && !isUUID || holdsChecked([]rune(digits), panMin) {
			return true
		}
	}
	return false
}

// HoldsCardNumber reports whether a text holds what may be a full card number: 13 to 19
// digits in a row of which the check digit is right.
func HoldsCardNumber(text string) bool {
	for digits := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsDigit(r) }) {
		if holdsChecked([]rune(digits), panMin+1) {
			return true
		}
	}
	return false
}

// holdsChecked reports whether so many digits in a row, or more, have a right check digit.
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

// separators are what stands between the groups of a code.
var separators = strings.NewReplacer(" ", "", "-", "", "_", "", ".", "", ":", "", "/", "")

// CheckDigit reports whether digits can be a whole card number: 12 to 19 of them of
// which the last is right (Luhn). Of digits beyond ASCII's that is taken for granted.
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
