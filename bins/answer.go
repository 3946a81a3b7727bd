package bins

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/carddata/carddata-go/internal/transport"
)

// A lookup is one identifier on its way to an answer.
type lookup struct {
	sent     string
	inputs   int  // that wait for it
	asked    bool // the service was
	missed   bool // by the cache
	resolved bool
	// receivers are the inputs that wait for it, where order does not matter.
	receivers []waitingInput
	answer
}

// An answer can wait for its receivers at rest, if it is kept anyway: that takes
// a tenth of the memory.
type answer struct {
	known       *entry
	own         bool // what is known was asked for this identifier, and the next three are its own
	pan         string
	correlation string
	whole       Result // as it came; of one at rest the BIN
	err         error
}

// isWhole tells whether an answer could rest, and does not.
func (a *answer) isWhole() bool { return a.known != nil && a.whole.Data != nil }

// rest gives up what can be made anew. It copies what it keeps, as the strings of
// an item lie together.
func (a *answer) rest() {
	if !a.isWhole() {
		return
	}
	if card := a.whole.Data.Card; card != nil {
		a.pan, a.correlation = strings.Clone(card.PANOrToken.Reveal()), strings.Clone(card.CorrelationID)
	}
	a.whole = Result{BIN: strings.Clone(a.whole.BIN)}
}

// take is result for an answer's first receiver, which may have what came.
func (a *answer) take(id string) Result {
	if !a.isWhole() {
		return a.result(id)
	}
	r := a.whole
	a.rest()
	return r
}

// result is a copy of the receiver's own, of an answer at rest if it can rest.
func (a *answer) result(id string) Result {
	if a.known == nil {
		return a.whole.clone()
	}
	r := a.known.result(id)
	if a.own {
		r.BIN = a.whole.BIN
		if r.Data != nil && r.Data.Card != nil {
			r.Data.Card.PANOrToken, r.Data.Card.CorrelationID = NewIdentifier(a.pan), a.correlation
		}
	}
	return r
}

// refuse ends a lookup that cannot be sent.
func (l *lookup) refuse(err error) { l.answer, l.resolved, l.asked = answer{err: err}, true, true }

// A delivery is what a request came to.
type delivery struct {
	answers  []answer          // in order of the lookups
	values   map[string][]byte // for the caller's cache
	attempts int
	err      error
	panicked any // what the caller's own code did, such as a token source
}

// broke is what a request came to that ended neither with answers nor an error.
func (d *delivery) broke(panicked any) {
	d.err = transport.Reason("a function of the caller's panicked, or ended its goroutine")
	if d.panicked = panicked; panicked == nil {
		d.panicked = d.err
	}
}

// ask sends the lookups in one request.
func (c *Client) ask(ctx context.Context, s *answerStore, lookups []*lookup, enhanced *bool, how lookupHow) (d delivery) {
	request := &LookupRequest{Cards: make([]LookupCard, len(lookups)), Enhanced: enhanced}
	sent := make([]string, len(lookups))
	for i, l := range lookups {
		sent[i] = l.sent
		request.Cards[i].Card = NewIdentifier(l.sent)
	}
	var resp *LookupResponse
	if resp, d.attempts, d.err = c.lookup(ctx, request, how, nil); d.err == nil {
		d.answers, d.values = s.settle(sent, resp.Cards)
	}
	return d
}

// give gives each lookup its answer, or all of them the error.
func (d *delivery) give(lookups []*lookup) {
	for i, l := range lookups {
		l.resolved = true
		if d.err != nil {
			l.answer = answer{err: d.err}
		} else {
			l.answer = d.answers[i]
		}
	}
}

// forgetCard removes what belongs to the one card that was asked for.
func (r *Result) forgetCard() {
	if r.Data != nil && r.Data.Card != nil {
		r.Data.Card.PANOrToken, r.Data.Card.CorrelationID = Identifier{}, ""
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
