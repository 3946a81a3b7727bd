package bins

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/carddata/carddata-go/internal/fault"
)

// MaxCards is the most cards in one request, as the service documents.
const MaxCards = 50

// A LookupRequest asks for 1 to [MaxCards] cards. It is the body of the request.
type LookupRequest struct {
	// Cards are what to look up: see [Cards]. Whether one may occur twice is not documented.
	Cards []LookupCard `json:"cards"`

	// Enhanced switches the enhanced lookup on or off, as new(true) does. Nil leaves the field out.
	// Its default and its effect are not documented.
	Enhanced *bool `json:"enhanced,omitzero"`

	// KeepRaw keeps each item's JSON in [Result.Raw], for fields that are not documented.
	KeepRaw bool `json:"-"`
}

// A LookupCard is one element of [LookupRequest.Cards]. Its JSON is not masked: see
// [Identifier].
type LookupCard struct {
	// Card is a BIN, a card number or a token, in valid UTF-8. An empty one is left out. Its format,
	// and whether it is required, are not documented.
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
	// Cards are the result items; nil if the service sent null or left them out. Their order and
	// number are not documented: match them by [Result.BIN], or use [Client.LookupAll] or
	// [Loader.Load]. A card gets the item that has it as bin or pan_or_token; else the only one whose bin or
	// pan_or_token it begins with; else the one at its position, if there are as many items as cards and
	// none of these texts has another digit at the same place. Otherwise it has [ErrMissing].
	Cards []Result `json:"cards"`

	// RequestID is for the service's support: the header X-Request-Id, X-Correlation-Id or
	// Request-Id, none of them documented; "" if there is none.
	RequestID string `json:"-"`

	header func() http.Header // a func, because fmt prints only its address
}

// Header returns the response header; nil in a LookupResponse that you made. Do not change it.
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
