package bins

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/carddata/carddata-go/bins/internal/match"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/mask"
)

// A Result is one item of a response. It may have a card, an error, both or neither, because
// the service does not document when an item has an error: [Result.Card] handles all cases.
// The JSON of a Result is not masked: do not log it.
type Result struct {
	// BIN is usually the first digits of what you looked up, but this is not documented. It may be a card
	// number: print NewIdentifier(BIN).
	BIN string `json:"bin"`
	// Data holds the card; nil if the service sent none.
	Data *Data `json:"data"`
	// Error is the service's error text; "" if it sent none, or an empty value, 0 or false. A value that
	// is no string is given as its JSON. The texts are not documented, and not printed.
	Error string `json:"error"`

	// Unread has the paths of the members that cannot be read, such as "data.card.bank" for a string in
	// place of an object. They are not stated.
	Unread []string `json:"-"`

	// Err matches [ErrBadResponse] if the item is no JSON object; nil if it is one.
	Err error `json:"-"`

	// Stale is true for an expired result of a cache: see [CacheOptions.StaleFor].
	Stale bool `json:"-"`

	// Raw is the item's JSON; nil unless [LookupRequest.KeepRaw] is set.
	Raw json.RawMessage `json:"-"`
}

// Card returns the item's card, or an [*ItemError] if the item has an error or no card: usually the
// service does not know the card, and [ItemError.Message] has its words. If the item has both, Card
// returns both, and whether the card counts is not documented.
func (r *Result) Card() (*Card, error) {
	var card *Card
	if r.hasCard() {
		card = r.Data.Card
	}
	if card != nil && r.Error == "" {
		return card, nil
	}
	item := Result{BIN: r.BIN, Error: r.Error, Err: r.Err}
	return card, &ItemError{func() Result { return item }}
}

// Format prints the result with its BIN masked, and "****" for an error. Package fmt ignores it in an
// unexported field, and prints all unmasked.
func (r Result) Format(state fmt.State, verb rune) {
	type plain struct {
		BIN   string
		Data  *Data
		Error string
	}
	p := plain{BIN: mask.Identifier(r.BIN), Data: r.Data}
	if r.Error != "" || r.Err != nil {
		p.Error = "****"
	}
	fmt.Fprintf(state, fmt.FormatString(state, verb), p)
}

// LogValue logs the masked BIN, and whether there is a card and an error.
func (r Result) LogValue() slog.Value {
	return slog.GroupValue(slog.String("bin", mask.Identifier(r.BIN)),
		slog.Bool("card", r.hasCard()), slog.Bool("error", r.Error != "" || r.Err != nil))
}

func (r *Result) hasCard() bool { return r.Data != nil && r.Data.Card != nil }

// item is what the result says about the card that it is for.
func (r *Result) item() match.Item {
	if !r.hasCard() {
		return match.Item{BIN: r.BIN}
	}
	card := r.Data.Card
	return match.Item{BIN: r.BIN, Echo: card.PANOrToken.Reveal(), HasCard: true, Low: card.BINMin, High: card.BINMax}
}

// forgetCard removes the fields of a single card, so that the result can serve another one.
func (r *Result) forgetCard(id string) {
	if !strings.HasPrefix(id, r.BIN) {
		r.BIN = ""
	}
	if r.hasCard() {
		r.Data.Card.PANOrToken, r.Data.Card.CorrelationID = Identifier{}, ""
	}
}

// clone returns a deep copy of all that a caller can change.
func (r Result) clone() Result {
	if r.Data != nil {
		r.Data = &Data{Card: r.Data.Card}
	}
	if r.hasCard() {
		card := *r.Data.Card
		card.AdditionalCardBrands = slices.Clone(card.AdditionalCardBrands)
		card.NetworkFees = slices.Clone(card.NetworkFees)
		r.Data.Card = &card
	}
	r.Raw, r.Unread = slices.Clone(r.Raw), slices.Clone(r.Unread)
	return r
}

// An ItemError says that one item of a response has an error, or no card, which is a normal
// outcome of a lookup. Its text has neither BIN nor Message.
type ItemError struct {
	item func() Result // a func, because fmt prints only its address
}

func (e *ItemError) result() Result {
	if e.item == nil {
		return Result{}
	}
	return e.item()
}

// Unwrap returns [Result.Err]; nil if the item is a JSON object.
func (e *ItemError) Unwrap() error { return e.result().Err }

// BIN returns [Result.BIN], unmasked.
func (e *ItemError) BIN() string { return e.result().BIN }

// Message returns [Result.Error], the service's error text; "" if there is none.
func (e *ItemError) Message() string { return e.result().Error }

// Error returns the text.
func (e *ItemError) Error() string {
	switch {
	case e.Unwrap() != nil:
		return "bins: " + e.Unwrap().Error()
	case e.Message() == "":
		return "bins: the service sent neither a card nor an error for this card"
	}
	return "bins: the service sent an error for this card, Message has its text"
}

// Format prints the text, under any verb.
func (e ItemError) Format(state fmt.State, verb rune) { fault.Format(state, verb, e.Error()) }

// MarshalText returns the text, for JSON logs.
func (e ItemError) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }
