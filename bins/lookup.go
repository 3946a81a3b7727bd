package bins

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/carddata/carddata-go/bins/internal/match"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/mask"
	"github.com/carddata/carddata-go/internal/transport"
)

// MaxCards is the most cards in one request, as the service documents.
const MaxCards = 50

// A LookupRequest asks for 1 to [MaxCards] cards. It is the body of the request.
type LookupRequest struct {
	// Cards are 1 to [MaxCards] cards: see [Cards]. Whether one may occur twice is not
	// documented.
	Cards []LookupCard `json:"cards"`

	// Enhanced switches the enhanced lookup on or off: set it with new(true). Nil leaves
	// the field out. Neither its default nor its effect is documented.
	Enhanced *bool `json:"enhanced,omitzero"`

	// KeepRaw keeps each item's JSON in [Result.Raw], for fields that are not documented.
	// It is not sent.
	KeepRaw bool `json:"-"`
}

// A LookupCard is one element of [LookupRequest.Cards]. Its JSON is not masked: see
// [Identifier].
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
	// Cards are the result items; nil if the service sent null or left them out. Neither
	// their order is documented, nor that there is one for each card: match them by
	// [Result.BIN], or use [Client.LookupAll] or [Loader.Load]. These match an item by what it
	// names. An item that fits several cards, such as a "bin" of six digits for two BINs of
	// eight, or that names none, is matched by its position, if all other items are in order.
	// What stays unclear is [ErrMissing]: look such cards up one by one.
	Cards []Result `json:"cards"`

	// RequestID is for the service's support: the header X-Request-Id, X-Correlation-Id or
	// Request-Id, none of them documented; "" if there is none.
	RequestID string `json:"-"`

	header func() http.Header // a func, because fmt prints only its address
}

// Header returns the response header, such as quotas, Deprecation or Sunset; nil in a
// LookupResponse that you made. Do not change it. It is never printed.
func (r *LookupResponse) Header() http.Header {
	if r.header == nil {
		return nil
	}
	return r.header()
}

// Format prints the response with its items masked, under any verb.
func (r LookupResponse) Format(state fmt.State, verb rune) {
	type plain struct {
		Cards     []Result
		RequestID string
	}
	fmt.Fprintf(state, fmt.FormatString(state, verb), plain{r.Cards, fault.Loggable(r.RequestID)})
}

// LogValue logs the number of items and the request id, and no item.
func (r LookupResponse) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("cards", len(r.Cards)), slog.String("request_id", fault.Loggable(r.RequestID)))
}

// A Result is one item of a response. It may have a card, an error, both or neither, because
// the service does not document when an item has an error: [Result.Card] handles all cases.
// The JSON of a Result is not masked: do not log it.
type Result struct {
	// BIN is the item's bin: usually the first digits of what you looked up, but this is not
	// documented. As it may be a card number, print NewIdentifier(BIN).
	BIN string `json:"bin"`
	// Data holds the card; nil if the service sent none.
	Data *Data `json:"data"`
	// Error is the service's error text; "" if the service sent none, or an empty value, 0 or
	// false. An object, or another value that is no string, is given as its JSON. The values
	// are not documented. Printing the Result does not show it.
	Error string `json:"error"`

	// Unread has the paths of the members that the service sent in a form that cannot be read,
	// such as "data.card.bank" for a string in place of an object. They read as not stated. A
	// path in an array has no index. It is nil in the usual case.
	Unread []string `json:"-"`

	// Err is set if the item is no JSON object, and matches [ErrBadResponse].
	Err error `json:"-"`

	// Stale is true if the result is from a cache and has expired: see
	// [CacheOptions.StaleFor].
	Stale bool `json:"-"`

	// Raw is the item's JSON; nil unless [LookupRequest.KeepRaw] is set.
	Raw json.RawMessage `json:"-"`
}

// Card returns the item's card, or an [*ItemError] if the item has an error or no card, or both
// if it has both: whether that card counts is not documented. An error that matches
// [ErrBadResponse] says that the item is no JSON object. Any other usually means that the card
// is unknown, unless [Result.Unread] has "data" or "data.card"; [ItemError.Message] has the
// service's words.
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

// Format prints the result with its BIN masked, and "****" for an error. fmt does not call it
// for %w and %p, which print the fields: do not use them.
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
// Another number of cards, or one that is not valid UTF-8, fails with [ErrInvalidArgument]
// before anything is sent. An unknown card does not fail the call: see [Result.Card]. Most
// failures are retried: see Retries in the package comment. The call ends at the deadline of
// ctx, or after 30 seconds if ctx has none.
func (c *Client) Lookup(ctx context.Context, req *LookupRequest, opts ...Option) (*LookupResponse, error) {
	resp, _, err := c.lookup(ctx, req, transport.Call{}, opts)
	return resp, err
}

const lookupRoute = "/bins/multiple"

// lookup is Lookup as a call that may be told more, and counts the requests that it
// sent.
func (c *Client) lookup(ctx context.Context, req *LookupRequest, call transport.Call, opts []Option) (_ *LookupResponse, attempts int, _ error) {
	call.Operation = "lookup"
	fail := func(err error) (*LookupResponse, int, error) {
		return nil, 0, &Error{Operation: call.Operation, Err: err}
	}
	if c == nil || c.core == nil {
		return fail(fault.Invalid("the client was not made by NewClient"))
	}
	var err error
	if call.Body, err = req.encode(); err != nil {
		return fail(err)
	}
	var resp *LookupResponse
	call.Method, call.Route, call.Path = http.MethodPost, lookupRoute, lookupRoute
	call.Headers, call.Identifiers = transport.JSONHeaders, req.identifiers
	call.Decode = func(body []byte) (err error) {
		resp, err = decode(body, req.KeepRaw, len(req.Cards), &call.Drift)
		if err == nil && resp.Cards == nil && fault.ErrorInPlaceOf("cards", body) {
			err = fault.Unusable("an error object")
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
		return nil, fault.Invalid("the request is nil")
	case len(r.Cards) == 0 || len(r.Cards) > MaxCards:
		return nil, fault.Invalid("%d cards given, 1 to %d allowed: LookupAll takes any number", len(r.Cards), MaxCards)
	}
	type card struct {
		Card string `json:"card,omitempty"`
	}
	cards := make([]card, len(r.Cards))
	for i := range r.Cards {
		cards[i].Card = r.Cards[i].Card.Reveal()
		// Encoding would replace the bytes, and look up another card.
		if !utf8.ValidString(cards[i].Card) {
			return nil, fault.Invalid("card %d of %d is not valid UTF-8", i+1, len(r.Cards))
		}
	}
	// As the request itself would be, without a call of MarshalJSON for each card.
	return json.Marshal(struct {
		Cards    []card `json:"cards"`
		Enhanced *bool  `json:"enhanced,omitempty"`
	}{cards, r.Enhanced})
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
