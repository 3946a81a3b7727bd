package bins

import (
	"bytes"
	"context"
	"slices"
)

// A lookup is one identifier on its way to an answer.
type lookup struct {
	sent     string
	inputs   int  // that wait for it
	asked    bool // the service was
	missed   bool // by the cache
	resolved bool
	answer
}

// An answer waits for its receivers at rest, if it is kept anyway: that takes a
// tenth of the memory.
type answer struct {
	known       *entry
	own         bool // what is known was asked for this identifier, and the next three are its own
	pan         Identifier
	correlation string
	whole       Result // all of it if it is not known, or else the BIN
	err         error
}

// result is a copy of the receiver's own.
func (a *answer) result(id string) Result {
	if a.known == nil {
		return a.whole.clone()
	}
	r := a.known.result(id)
	if a.own {
		r.BIN = a.whole.BIN
		if r.Data != nil && r.Data.Card != nil {
			r.Data.Card.PANOrToken, r.Data.Card.CorrelationID = a.pan, a.correlation
		}
	}
	return r
}

// ask sends the lookups in one request and returns their answers in order.
func (c *Client) ask(ctx context.Context, s *answerStore, lookups []*lookup, enhanced *bool, how lookupHow) (_ []answer, attempts int, _ error) {
	request := &LookupRequest{Cards: make([]LookupCard, len(lookups)), Enhanced: enhanced}
	sent := make([]string, len(lookups))
	for i, l := range lookups {
		sent[i] = l.sent
		request.Cards[i].Card = NewIdentifier(l.sent)
	}
	resp, attempts, err := c.lookup(ctx, request, how, nil)
	if err != nil {
		return nil, attempts, err
	}
	return s.settle(ctx, sent, resp.Cards), attempts, nil
}

// take gives each lookup its answer, or all of them the error.
func take(lookups []*lookup, answers []answer, err error) {
	for i, l := range lookups {
		l.resolved = true
		if err != nil {
			l.answer = answer{err: err}
		} else {
			l.answer = answers[i]
		}
	}
}

// clone returns a copy that shares nothing that can be written to.
func (r Result) clone() Result {
	if r.Data == nil {
		return r
	}
	data := *r.Data
	if data.Card != nil {
		card := *data.Card
		card.AdditionalCardBrands = slices.Clone(card.AdditionalCardBrands)
		card.NetworkFees = bytes.Clone(card.NetworkFees)
		data.Card = &card
	}
	r.Data, r.Raw = &data, bytes.Clone(r.Raw)
	return r
}
