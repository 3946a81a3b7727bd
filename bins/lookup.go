package bins

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/carddata/carddata-go/internal/mask"
	"github.com/carddata/carddata-go/internal/transport"
)

// MaxCards is the most cards that one request may carry, as the service documents.
// [Client.LookupAll] takes any number.
const MaxCards = 50

// A LookupRequest asks for 1 to [MaxCards] cards. It is the body of the request.
type LookupRequest struct {
	// Cards are the cards to look up, 1 to [MaxCards] of them. [Cards] makes the list
	// from strings. Whether a card may occur twice is not documented.
	Cards []LookupCard `json:"cards"`

	// Enhanced switches the enhanced lookup on or off: set it with new(true). Nil
	// leaves the field out, so the service's default applies. Neither the default nor
	// the effect is documented.
	Enhanced *bool `json:"enhanced,omitzero"`

	// KeepRaw keeps each item's JSON in [Result.Raw], so that you can read fields that
	// are not documented. The JSON takes memory for as long as you hold the result.
	// KeepRaw is not sent.
	KeepRaw bool `json:"-"`
}

// A LookupCard is one element of [LookupRequest.Cards]. Its JSON holds the card
// unmasked, even when slog's JSON handler encodes a list of them: see [Identifier].
type LookupCard struct {
	// Card is a BIN, a card number or a token, in valid UTF-8. Its format is not
	// documented, nor whether it is required: an empty one is left out.
	Card Identifier `json:"card,omitzero"`
}

// Cards makes [LookupRequest.Cards] from strings. It checks nothing: Lookup does.
func Cards(cards ...string) []LookupCard {
	list, values := make([]LookupCard, len(cards)), slices.Clone(cards)
	for i := range values {
		if values[i] != "" {
			list[i].Card = Identifier{value: &values[i]}
		}
	}
	return list
}

// LogValue logs the number of cards, and no card.
func (r LookupRequest) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("cards", len(r.Cards)))
}

// LogValue logs the card masked.
func (c LookupCard) LogValue() slog.Value { return c.Card.LogValue() }

// A LookupResponse holds the results of one request. It is the body of the response.
type LookupResponse struct {
	// Cards are the result items. It is nil, without an error, if the service sent null
	// or left it out. Neither their order is documented, nor that there is one for each
	// card, so match them by [Result.BIN], not by position. [Client.LookupAll] and
	// [Loader.Load] do that for you.
	Cards []Result `json:"cards"`

	// RequestID is the request id from the response header, to quote to the service's
	// support; "" if there is none. The header is not documented: X-Request-Id,
	// X-Correlation-Id and Request-Id are read.
	RequestID string `json:"-"`

	header func() http.Header // of which fmt prints an address
}

// Header returns the response header, for example to read quotas, Deprecation or
// Sunset. It is nil in a LookupResponse that you made yourself. Do not change it. It is
// never printed.
func (r *LookupResponse) Header() http.Header {
	if r.header == nil {
		return nil
	}
	return r.header()
}

// Format prints the response with its items masked, whatever the verb.
func (r LookupResponse) Format(state fmt.State, verb rune) {
	type plain struct {
		Cards     []Result
		RequestID string
	}
	fmt.Fprintf(state, fmt.FormatString(state, verb), plain{r.Cards, transport.Loggable(r.RequestID)})
}

// LogValue logs the number of items and the request id, and no item.
func (r LookupResponse) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("cards", len(r.Cards)), slog.String("request_id", transport.Loggable(r.RequestID)))
}

// A Result is one item of a response. When an item has an error instead of data is not
// documented, so it may have both, or neither: [Result.Card] handles all cases. The JSON
// of a Result holds everything unmasked: do not log it.
type Result struct {
	// BIN is the item's bin, as the service sent it. If you looked up a card number, it is
	// usually the beginning of that, but this is not documented. It may also be a card
	// number. Printing the Result masks it; printing BIN alone does not: print
	// NewIdentifier(BIN).
	BIN string `json:"bin"`
	// Data holds the card; nil if the service sent null or left it out.
	Data *Data `json:"data"`
	// Error is the service's error text; "" if the service sent null or left it out. Its
	// values are not documented. Printing the Result does not show it.
	Error string `json:"error"`

	// Err says which field of the item has an undocumented JSON type. It matches
	// [ErrBadResponse]. BIN is still set if it could be read. Other items are not
	// affected. If no item of a response can be read, the whole call fails instead,
	// with [ErrBadResponse].
	Err error `json:"-"`

	// Stale is true if the result is from a cache and has expired: see
	// [CacheOptions.StaleFor].
	Stale bool `json:"-"`

	// Raw is the item's JSON, with all unknown fields. It is nil unless
	// [LookupRequest.KeepRaw] is set.
	Raw json.RawMessage `json:"-"`
}

// Card returns the item's card. If the item has an error or no card, it returns an
// [*ItemError]. If the item has both an error and a card, it returns both: whether that
// card counts is not documented. An error that matches [ErrBadResponse] says that the item
// could not be read. Any other usually means that the card is unknown;
// [ItemError.Message] has the service's words.
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

// Format prints the result with its BIN masked, because the service may echo a card
// number, and "****" for an error. fmt does not call it for %w and %p, which print the
// exported fields: do not use them.
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

// Lookup looks up 1 to [MaxCards] cards in one request.
//
// Every error is an [*Error]. A request with fewer than 1 or more than [MaxCards]
// cards, or with a card that is not valid UTF-8, fails with [ErrInvalidArgument] before
// anything is sent. An unknown card does not fail the call: see [Result.Card].
//
// A lookup only reads, so most failures are retried: see Retries in the package
// comment. The call ends at the deadline of ctx, or after 30 seconds if ctx has none.
func (c *Client) Lookup(ctx context.Context, req *LookupRequest, opts ...Option) (*LookupResponse, error) {
	resp, _, err := c.lookup(ctx, req, transport.Call{}, opts)
	return resp, err
}

// lookup is Lookup as a call that may be told more, and counts the requests that it
// sent.
func (c *Client) lookup(ctx context.Context, req *LookupRequest, call transport.Call, opts []Option) (_ *LookupResponse, attempts int, _ error) {
	call.Operation = "lookup"
	fail := func(err error) (*LookupResponse, int, error) {
		return nil, 0, &Error{Operation: call.Operation, Err: err}
	}
	if c == nil || c.core == nil {
		return fail(transport.Invalid("the client was not made by NewClient"))
	}
	var err error
	if call.Body, err = req.encode(); err != nil {
		return fail(err)
	}
	var resp *LookupResponse
	call.Method, call.Route, call.Path = http.MethodPost, "/bins/multiple", "/bins/multiple"
	call.Headers, call.Identifiers = transport.JSONHeaders, req.identifiers
	call.Decode = func(body []byte) (err error) {
		resp, err = decode(body, req.KeepRaw, len(req.Cards), &call.Drift)
		if err == nil && resp.Cards == nil && transport.ErrorInPlaceOf("cards", body) {
			err = transport.Unusable("an error object")
		}
		return err
	}
	result := c.core.Do(ctx, &call, opts)
	if result.Failure != nil {
		return nil, result.Attempts, (*Error)(result.Failure)
	}
	resp.RequestID, resp.header = result.RequestID, func() http.Header { return result.Header }
	return resp, result.Attempts, nil
}

// identifiers are the cards as they are sent, but for BINs, which are no secret.
func (r *LookupRequest) identifiers() []string {
	var cards []string
	for _, card := range r.Cards {
		if id := card.Card.Reveal(); mask.Identifier(id) != id {
			cards = append(cards, id)
		}
	}
	return cards
}

func (r *LookupRequest) encode() ([]byte, error) {
	switch {
	case r == nil:
		return nil, transport.Invalid("the request is nil")
	case len(r.Cards) == 0 || len(r.Cards) > MaxCards:
		return nil, transport.Invalid("%d cards given, 1 to %d allowed: LookupAll takes any number", len(r.Cards), MaxCards)
	}
	type card struct {
		Card string `json:"card,omitempty"`
	}
	cards := make([]card, len(r.Cards))
	for i := range r.Cards {
		cards[i].Card = r.Cards[i].Card.Reveal()
		// Encoding would replace the bytes, and look up another card.
		if !utf8.ValidString(cards[i].Card) {
			return nil, transport.Invalid("card %d of %d is not valid UTF-8", i+1, len(r.Cards))
		}
	}
	// As the request itself would be, without a call of MarshalJSON for each card.
	return json.Marshal(struct {
		Cards    []card `json:"cards"`
		Enhanced *bool  `json:"enhanced,omitempty"`
	}{cards, r.Enhanced})
}
