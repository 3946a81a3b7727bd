package mask

import "unicode"

// Digits returns the decimal digits of a text, of every script, in ASCII.
func Digits(s string) string {
	var digits []byte
	for _, r := range s {
		if unicode.IsDigit(r) {
			digits = append(digits, byte('0'+value(r)))
		}
	}
	return string(digits)
}

// CountDigits returns the number of digits that [Digits] returns.
func CountDigits(s string) (n int) {
	for _, r := range s {
		if unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

// value returns the value of a decimal digit. The digits of a script are ten in a row, and so
// are the digits of its styles.
func value(r rune) int {
	for _, in := range unicode.Nd.R16 {
		if rune(in.Lo) <= r && r <= rune(in.Hi) {
			return int(r-rune(in.Lo)) % 10
		}
	}
	for _, in := range unicode.Nd.R32 {
		if rune(in.Lo) <= r && r <= rune(in.Hi) {
			return int(r-rune(in.Lo)) % 10
		}
	}
	return 0
}
