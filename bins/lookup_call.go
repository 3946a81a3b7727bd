package bins

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/mask"
	"github.com/carddata/carddata-go/internal/transport"
)

// Lookup looks up 1 to [MaxCards] cards in one request.
//
// Another number of cards, or a card that is not valid UTF-8, fails with [ErrInvalidArgument] before
// anything is sent. An unknown card does not fail the call: see [Result.Card]. The call ends at the
// deadline of ctx, or after 30 seconds if ctx has none.
func (c *Client) Lookup(ctx context.Context, req *LookupRequest, opts ...CallOption) (*LookupResponse, error) {
	settings, err := c.settings(opts)
	if err != nil {
		return nil, &Error{Operation: "lookup", Err: err}
	}
	resp, _, err := c.lookup(ctx, req, transport.Call{}, settings)
	return resp, err
}

const lookupRoute = "/bins/multiple"

// lookup is Lookup as a call that may be told more, and counts the requests that it
// sent.
func (c *Client) lookup(ctx context.Context, req *LookupRequest, call transport.Call, settings *transport.Settings) (_ *LookupResponse, attempts int, _ error) {
	call.Operation = cmp.Or(call.Operation, "lookup")
	fail := func(err error) (*LookupResponse, int, error) {
		return nil, 0, &Error{Operation: call.Operation, Err: err}
	}
	var err error
	if call.Body, err = req.encode(); err != nil {
		return fail(err)
	}
	var resp *LookupResponse
	call.Method, call.Route, call.Path = http.MethodPost, lookupRoute, lookupRoute
	call.Headers, call.Identifiers = transport.JSONHeaders, req.identifiers
	call.Decode = func(body []byte) (err error) {
		resp, err = decode(body, req.KeepRaw)
		if err == nil && resp.Cards == nil && fault.ErrorInPlaceOf("cards", body) {
			err = fault.Unusable("an error object")
		}
		return err
	}
	result := c.core.Do(ctx, &call, settings)
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
