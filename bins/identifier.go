package bins

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/carddata/carddata-go/internal/mask"
	"github.com/carddata/carddata-go/internal/transport"
)

// An Identifier is what a card is looked up by: a BIN, a card number or a token. It is
// cards[].card of the request. The format is not documented, so any valid UTF-8 is sent
// unchanged.
//
// An Identifier masks itself in fmt, with every verb, and in slog. A BIN of up to 8
// digits is printed in full, 4111111111111111 as 411111******1111, and a token as ****.
// [Identifier.Reveal] returns the value. Compare with [Identifier.Equal]; == does not
// compile.
//
// encoding/json reads and writes the value unmasked, because JSON is data. slog's JSON
// handler uses encoding/json for lists, maps and structs: log one identifier at a time.
type Identifier struct {
	_ [0]func() // == would compare addresses
	// fmt prints a pointer as an address, where it cannot call methods, and a string
	// as it is.
	value *string
}

// NewIdentifier returns the Identifier of a card. An empty string makes the zero
// Identifier.
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

// Equal reports whether two identifiers have the same value.
func (id Identifier) Equal(other Identifier) bool { return id.Reveal() == other.Reveal() }

// String returns the masked form.
func (id Identifier) String() string { return mask.Identifier(id.Reveal()) }

// Format prints the masked form, whatever the verb.
func (id Identifier) Format(state fmt.State, verb rune) {
	transport.Format(state, verb, id.String())
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

// An Optional is a boolean or an integer that the service may send as null, or leave
// out. It is then "not stated", which is neither false nor 0: code that took it for one
// of them could route a payment wrongly. The zero value is "not stated". Optionals
// compare with ==.
//
//	if prepaid, stated := card.Prepaid.Get(); stated && prepaid { … }
//	length := card.Number.Length.Or(16)
type Optional[T bool | int64] struct {
	value  T
	stated bool
}

// Stated returns an Optional with a value, for tests and fakes.
func Stated[T bool | int64](value T) Optional[T] { return Optional[T]{value, true} }

// Get returns the value and true, or zero and false if none is stated.
func (o Optional[T]) Get() (value T, stated bool) { return o.value, o.stated }

// Or returns the value, or unstated if none is stated.
func (o Optional[T]) Or(unstated T) T {
	if !o.stated {
		return unstated
	}
	return o.value
}

// String returns the value, or "not stated".
func (o Optional[T]) String() string {
	if !o.stated {
		return "not stated"
	}
	return fmt.Sprint(o.value)
}

// MarshalJSON writes the value, or null if none is stated.
func (o Optional[T]) MarshalJSON() ([]byte, error) {
	if !o.stated {
		return []byte("null"), nil
	}
	return json.Marshal(o.value)
}

// UnmarshalJSON reads a value or null. It also reads an integer from a string of
// digits, such as "16", and takes an empty string for null.
func (o *Optional[T]) UnmarshalJSON(data []byte) error {
	*o = Optional[T]{}
	if string(data) == "null" || string(data) == `""` {
		return nil
	}
	if _, integer := any(o.value).(int64); integer {
		digits, _ := strconv.Unquote(string(data)) // "" if it is no string
		// Anything but digits stays a string, and is refused as one.
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
			data = strconv.AppendInt(nil, n, 10)
		}
	}
	if json.Unmarshal(data, &o.value) != nil {
		// The error of encoding/json quotes a number that does not fit, which may be a card's.
		return &json.UnmarshalTypeError{Value: "another value", Type: reflect.TypeFor[T]()}
	}
	o.stated = true
	return nil
}

// mayBeCardNumber tells whether an identifier holds as many digits as a card
// number has, in whatever notation and script.
func mayBeCardNumber(id string) bool {
	return utf8.RuneCountInString(mask.Digits(id)) >= cardNumberDigits
}

// cardNumberDigits is the least that a card number has.
const cardNumberDigits = 12

// truncatePAN is what is sent for a card: what may be a card number shortened to a
// prefix, if one is asked for.
func truncatePAN(card string, prefix int) string {
	if prefix == 0 || !mayBeCardNumber(card) {
		return card
	}
	return string([]rune(mask.Digits(card))[:prefix])
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
