package bins

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"unicode/utf8"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/mask"
)

// An Identifier is what a card is looked up by: a BIN, a card number or a token. Any valid UTF-8 is
// sent unchanged.
//
// It is masked by fmt and slog: a BIN of up to 8 digits is printed in full, 4111111111111111 as
// 411111******1111, and anything else as ****. JSON is not masked, so log no list, map or struct of
// identifiers with slog's JSON handler.
type Identifier struct {
	_ [0]func() // == would compare addresses
	// fmt prints a pointer as an address, where it cannot call methods, and a string
	// as it is.
	value *string
}

// NewIdentifier returns the Identifier of a card.
func NewIdentifier(card string) Identifier {
	if card == "" {
		return Identifier{}
	}
	return Identifier{value: &card}
}

// Reveal returns the value, unmasked.
func (id Identifier) Reveal() string {
	if id.value == nil {
		return ""
	}
	return *id.value
}

// IsZero reports whether the identifier is empty.
func (id Identifier) IsZero() bool { return id.value == nil }

// Equal reports whether two identifiers have the same value. == does not compile.
func (id Identifier) Equal(other Identifier) bool { return id.Reveal() == other.Reveal() }

// String returns the masked form.
func (id Identifier) String() string { return mask.Identifier(id.Reveal()) }

// Format prints the masked form, under any verb.
func (id Identifier) Format(state fmt.State, verb rune) {
	fault.Format(state, verb, id.String())
}

// LogValue logs the masked form.
func (id Identifier) LogValue() slog.Value { return slog.StringValue(id.String()) }

// MarshalJSON writes the value unmasked.
func (id Identifier) MarshalJSON() ([]byte, error) { return json.Marshal(id.Reveal()) }

// UnmarshalJSON reads a string; null leaves the identifier empty.
func (id *Identifier) UnmarshalJSON(data []byte) error {
	var card string
	if err := json.Unmarshal(data, &card); err != nil {
		return err
	}
	*id = NewIdentifier(card)
	return nil
}

// mayBeCardNumber reports whether an identifier has as many digits as a card number, of any
// script.
func mayBeCardNumber(id string) bool { return mask.CountDigits(id) >= cardNumberDigits }

// cardNumberDigits is the least that a card number has.
const cardNumberDigits = 12

// truncatePAN returns what is sent for a card: if a prefix is asked for, the first digits of
// what may be a card number.
func truncatePAN(card string, prefix int) string {
	if prefix == 0 || !mayBeCardNumber(card) {
		return card
	}
	return mask.Digits(card)[:prefix]
}

// checkPrefix refuses lengths that would let card numbers through.
func checkPrefix(length int) error {
	if length < 0 || length >= cardNumberDigits {
		return fault.Invalid("the prefix length is %d, 0 to %d allowed", length, cardNumberDigits-1)
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
	case card == "":
		return fault.Invalid("the card is empty")
	case len(card) > maxCardBytes:
		return fault.Invalid("the card has %d bytes, %d allowed", len(card), maxCardBytes)
	case !utf8.ValidString(card):
		return fault.Invalid("the card is not valid UTF-8")
	}
	return nil
}
