package bins

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/carddata/carddata-go/internal/mask"
	"github.com/carddata/carddata-go/internal/transport"
)

// MaxCards is the most cards that one request may carry (interface, "Limits").
// [Client.LookupAll] takes any number.
const MaxCards = 50

// A LookupRequest asks for 1 to [MaxCards] cards (interface, "BIN lookup
// request"). [Cards] makes the list of plain strings.
type LookupRequest struct {
	Cards []LookupCard `json:"cards"`

	// Enhanced switches the enhanced lookup on or off. Nil leaves the member out,
	// which asks for the service's default; neither that default nor the effect
	// is documented. Set it with new(true).
	Enhanced *bool `json:"enhanced,omitzero"`

	// KeepRaw keeps each item's JSON in [Result.Raw], to reach members that the
	// documentation does not name. It costs memory for as long as the result is
	// held.
	KeepRaw bool `json:"-"`
}

// A LookupCard is one element of a request. JSON of it is the data itself, also
// where slog's JSON handler encodes a list: see [Identifier].
type LookupCard struct {
	Card Identifier `json:"card,omitzero"`
}

// Cards makes the elements of a request.
func Cards(cards ...string) []LookupCard {
	list, values := make([]LookupCard, len(cards)), slices.Clone(cards)
	for i := range values {
		if values[i] != "" {
			list[i].Card = Identifier{value: &values[i]}
		}
	}
	return list
}

// LogValue logs how many cards are asked for, and none of them.
func (r LookupRequest) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("cards", len(r.Cards)))
}

// LogValue logs the card masked.
func (c LookupCard) LogValue() slog.Value { return c.Card.LogValue() }

// A LookupResponse is the answer (interface, "BIN lookup response").
type LookupResponse struct {
	// Cards is nil when the service answered null or left it out, which is no
	// failure. Neither the order of the items nor that there is one for every card
	// is documented, and neither is what an item's BIN repeats of a longer
	// identifier: expect a beginning of it.
	Cards []Result `json:"cards"`

	// RequestID is the id that the service gave the request, to quote to its
	// support; "" if it gave none.
	RequestID string `json:"-"`
}

// Format prints the response with its items masked.
func (r LookupResponse) Format(state fmt.State, verb rune) {
	type plain LookupResponse
	p := plain(r)
	p.RequestID = transport.Printable(p.RequestID)
	fmt.Fprintf(state, fmt.FormatString(state, verb), p)
}

// LogValue logs how many items were answered, and none of them.
func (r LookupResponse) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("cards", len(r.Cards)), slog.String("request_id", transport.Printable(r.RequestID)))
}

// A Result is one item of the answer. When an item holds Error and when Data is
// not documented, so that any mix of the two is passed on. [Result.Card] reads
// both. Its JSON is the data whole: do not log that of lists of results.
type Result struct {
	BIN   string `json:"bin"`
	Data  *Data  `json:"data"`  // nil when null or absent
	Error string `json:"error"` // "" when null or absent

	// Raw is the whole item, unknown members included, if [LookupRequest.KeepRaw]
	// asked for it.
	Raw json.RawMessage `json:"-"`
}

// Card returns the item's card, and an [*ItemError] when the item carries an
// error or no card. An item that carries both a card and an error returns both.
func (r *Result) Card() (*Card, error) {
	var card *Card
	if r.Data != nil {
		card = r.Data.Card
	}
	if card == nil || r.Error != "" {
		return card, &ItemError{BIN: r.BIN, Message: r.Error}
	}
	return card, nil
}

// Format prints the result with its BIN masked, in case the service echoed a
// card number, and without Raw.
func (r Result) Format(state fmt.State, verb rune) {
	type plain Result
	p := plain(r)
	p.BIN, p.Error, p.Raw = mask.Identifier(p.BIN), mask.Text(p.Error), nil
	fmt.Fprintf(state, fmt.FormatString(state, verb), p)
}

// LogValue logs the BIN masked and whether there is a card.
func (r Result) LogValue() slog.Value {
	return slog.GroupValue(slog.String("bin", mask.Identifier(r.BIN)),
		slog.Bool("card", r.Data != nil && r.Data.Card != nil), slog.Bool("error", r.Error != ""))
}

// Lookup asks for the cards of req in one request (interface, endpoint 1).
//
// It fails with an [*Error]: [ErrInvalidArgument] before anything is sent when
// there are fewer than 1 or more than [MaxCards] cards. That some cards are
// unknown is no failure of the call: see [Result.Card].
//
// A lookup only reads, so it is repeated after most failures: see the package's
// section on retries. It ends by the deadline of ctx, or after 30 seconds if ctx
// has none.
func (c *Client) Lookup(ctx context.Context, req *LookupRequest, opts ...Option) (*LookupResponse, error) {
	resp, _, err := c.lookup(ctx, req, lookupHow{}, opts)
	return resp, err
}

// lookupHow says how a lookup differs from one by Lookup.
type lookupHow struct {
	patient bool   // may queue for the limiter as long as it takes
	arrived func() // called when an answer has arrived, before it is decoded
	useless func() // called when it cannot be decoded, and may be asked for again
}

// lookup is Lookup, and counts the requests that it sent.
func (c *Client) lookup(ctx context.Context, req *LookupRequest, how lookupHow, opts []Option) (_ *LookupResponse, attempts int, _ error) {
	const operation = "lookup"
	fail := func(err error) (*LookupResponse, int, error) {
		return nil, 0, &Error{Operation: operation, Err: err}
	}
	if c == nil || c.core == nil {
		return fail(transport.Invalid("the client was not made by NewClient"))
	}
	body, err := req.encode()
	if err != nil {
		return fail(err)
	}
	var resp *LookupResponse
	result := c.core.Do(ctx, &transport.Call{
		Operation: operation,
		Method:    http.MethodPost,
		Route:     "/bins/multiple",
		Path:      "/bins/multiple",
		Headers:   transport.JSONHeaders,
		Body:      body,
		Patient:   how.patient,
		Decode: func(body []byte) (err error) {
			if how.arrived != nil {
				how.arrived()
			}
			if resp, err = decode(body, req.KeepRaw, len(req.Cards)); err != nil && how.useless != nil {
				how.useless()
			}
			return err
		},
	}, opts)
	if result.Failure != nil {
		return nil, result.Attempts, (*Error)(result.Failure)
	}
	resp.RequestID = result.RequestID
	return resp, result.Attempts, nil
}

func (r *LookupRequest) encode() ([]byte, error) {
	switch {
	case r == nil:
		return nil, transport.Invalid("the request is nil")
	case len(r.Cards) == 0:
		return nil, transport.Invalid("0 cards given, 1 to %d allowed", MaxCards)
	case len(r.Cards) > MaxCards:
		return nil, transport.Invalid("%d cards given, 1 to %d allowed: LookupAll takes any number", len(r.Cards), MaxCards)
	}
	for i, card := range r.Cards {
		// Encoding would replace the bytes, and look up another card.
		if !utf8.ValidString(card.Card.Reveal()) {
			return nil, transport.Invalid("card %d of %d is not valid UTF-8", i+1, len(r.Cards))
		}
	}
	return r.append(make([]byte, 0, 64+32*len(r.Cards))), nil
}

// append writes what encoding/json would, at a tenth of the time.
func (r *LookupRequest) append(b []byte) []byte {
	b = append(b, `{"cards":[`...)
	for i, card := range r.Cards {
		if i > 0 {
			b = append(b, ',')
		}
		if card.Card.IsZero() {
			b = append(b, "{}"...)
			continue
		}
		b = append(appendText(append(b, `{"card":`...), card.Card.Reveal()), '}')
	}
	b = append(b, ']')
	if r.Enhanced != nil {
		b = strconv.AppendBool(append(b, `,"enhanced":`...), *r.Enhanced)
	}
	return append(b, '}')
}

// appendText appends valid UTF-8 as a JSON string.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ', c >= utf8.RuneSelf, c == '"', c == '\\', c == '<', c == '>', c == '&':
			quoted, _ := json.Marshal(text) // a string has no way to fail
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), text...), '"')
}
