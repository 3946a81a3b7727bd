package bins

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/carddata/carddata-go/internal/mask"
	"github.com/carddata/carddata-go/internal/transport"
)

// An Identifier is what a card is looked up by: a BIN, a card number or a token.
// The format is not documented, so that any valid UTF-8 travels as it is.
//
// It masks itself: fmt with every verb and slog show a BIN of up to 8 digits as
// it is, 4111111111111111 as 411111******1111, and a token as ****; in an
// unexported field fmt prints an address, and never the value. [Identifier.Reveal]
// returns it. Compare identifiers with [Identifier.Equal]; == does not compile.
//
// JSON is data and not a message to people, so encoding/json writes and reads
// the value itself. slog's JSON handler encodes lists, maps and structs that way:
// log one identifier at a time.
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

// IsZero tells whether the identifier is empty.
func (id Identifier) IsZero() bool { return id.value == nil }

// Equal tells whether two identifiers are the same.
func (id Identifier) Equal(other Identifier) bool { return id.Reveal() == other.Reveal() }

// String returns the masked form.
func (id Identifier) String() string { return mask.Identifier(id.Reveal()) }

// Format prints the masked form, whatever the verb.
func (id Identifier) Format(state fmt.State, verb rune) {
	transport.Format(state, verb, id.String())
}

// LogValue logs the masked form.
func (id Identifier) LogValue() slog.Value { return slog.StringValue(id.String()) }

// MarshalJSON writes the value itself.
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
