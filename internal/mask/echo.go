package mask

import (
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode"
)

// Fold leaves out what a service may change in what it repeats: it may group a card
// number anew, and print a token in capitals.
func Fold(s string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s))
}

// Repeats reports whether a folded text is a credential or an id, or holds one of at
// least so many bytes. Of a shorter one only the whole counts: "1" is part of nearly
// any id.
func Repeats(folded, own string, least int) bool {
	part := Fold(own)
	return part != "" && (folded == part || len(own) >= least && strings.Contains(folded, part))
}

// Bytes from which on a credential or an id is looked for inside of words, and encoded.
const wordMin, encodedMin = 6, 8

// Holds reports whether a name or a code repeats a credential or an id: a short one as
// a word, like 42 in job_42_missing, a longer one anywhere, or in hexadecimal or Base64.
func Holds(name, own string) bool {
	folded := Fold(name)
	if Repeats(folded, own, wordMin) {
		return true
	}
	part := Fold(own)
	switch {
	case part == "":
		return false
	case len(own) < wordMin:
		return asWord(part).MatchString(name)
	case len(own) < encodedMin:
		return false
	}
	if strings.Contains(folded, hex.EncodeToString([]byte(own))) {
		return true
	}
	// What stands before decides between three forms, and is part of the first digits
	// as what follows is of the last.
	for before, shared := range []int{0, 2, 3} {
		digits := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + own))
		if (before+len(own))%3 > 0 {
			digits = digits[:len(digits)-1]
		}
		if strings.Contains(folded, Fold(digits[shared:])) {
			return true
		}
	}
	return false
}

// asWord matches what is written with any separators, and is not a part of a longer
// word or number.
func asWord(part string) *regexp.Regexp {
	runes := []rune(part)
	other := func(r rune) string {
		if unicode.IsDigit(r) {
			return `\P{Nd}`
		}
		return `\P{L}`
	}
	var text strings.Builder
	for i, r := range runes {
		if i > 0 {
			text.WriteString(`[^\p{L}\p{Nd}]*`)
		}
		text.WriteString(regexp.QuoteMeta(string(r)))
	}
	return regexp.MustCompile(`(?i)(^|` + other(runes[0]) + `)` + text.String() + `($|` + other(runes[len(runes)-1]) + `)`)
}
