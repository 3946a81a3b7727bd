package mask

import (
	"strings"
	"unicode"
)

// Echoes returns a function that reports whether a name or a code of the service repeats a
// credential or an id of the caller: as it is, regrouped, or in another case. A value of
// fewer than least bytes must match as a whole, because "1" is part of nearly any id.
func Echoes(said string) func(own string, least int) bool {
	said = fold(said)
	return func(own string, least int) bool {
		part := fold(own)
		return part != "" && (said == part || len(own) >= least && strings.Contains(said, part))
	}
}

// fold removes the differences that a service may add when it repeats a value: it may regroup
// a card number, or print a token in capitals.
func fold(s string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s))
}
