package bins

import (
	"unicode"
	"unicode/utf8"

	"github.com/carddata/carddata-go/internal/transport"
)

// outgoing is what is sent for a card: what may be a card number shortened to a
// prefix, if one is asked for.
func outgoing(card string, prefix int) string {
	if prefix == 0 || !mayBeCardNumber(card) {
		return card
	}
	digits := make([]rune, 0, prefix)
	for _, r := range card {
		if len(digits) < prefix && unicode.IsDigit(r) {
			digits = append(digits, r)
		}
	}
	return string(digits)
}

// checkPrefix refuses lengths that would let card numbers through.
func checkPrefix(length int) error {
	if length < 0 || length >= cardNumberDigits {
		return transport.Invalid("the prefix length is %d, 0 to %d allowed", length, cardNumberDigits-1)
	}
	return nil
}

// maxCardBytes bounds an identifier where many travel together. Tokens stay far
// below it.
const maxCardBytes = 4 << 10

// checkCard refuses what no request could carry, so that one card does not fail
// the others.
func checkCard(card string) error {
	switch {
	case len(card) > maxCardBytes:
		return transport.Invalid("the card has %d bytes, %d allowed", len(card), maxCardBytes)
	case !utf8.ValidString(card):
		return transport.Invalid("the card is not valid UTF-8")
	}
	return nil
}
