package binstest

import (
	"encoding/json"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// A Server is a fake of POST {bin_url}/bins/multiple.
type Server struct {
	fake *sandbox.Fake
}

// NewServer starts a fake that ends with the test. If you use testing/synctest, call it
// inside the bubble, and close each [bins.Loader] before the test ends: synctest takes a renewal that
// still runs for a deadlock.
// Outside a test, such as in an Example, tb is nil: end the fake with Close.
func NewServer(tb testing.TB) *Server { return &Server{sandbox.NewFake(tb, sandbox.Bins)} }

// Close ends the fake. A fake of NewServer is closed at the end of the test.
func (s *Server) Close() { s.fake.Close() }

// Client returns a client of the fake. It reaches the fake by WithHTTPClient, so it cannot
// have WithTransport, WithTLSConfig or WithProxy: for these, give bins.NewClient the
// address of [Server.URL]. An option that NewClient refuses fails the test.
func (s *Server) Client(opts ...bins.Option) *bins.Client {
	opts = append([]bins.Option{bins.WithHTTPClient(s.HTTPClient())}, opts...)
	c, err := bins.NewClient(sandbox.BaseURL, bins.StaticToken("test-key"), opts...)
	s.fake.Must(err)
	return c
}

// SetResult sets the item for card and for every identifier that begins with it; the longest
// match wins. An empty card sets the item of all unknown identifiers. The BIN of result is sent as
// it is: with the BIN of another card, LookupAll and Loader return [bins.ErrMissing]. If result.Raw
// is set, it is sent instead of the other fields.
func (s *Server) SetResult(card string, result bins.Result) {
	item := result.Raw
	if item == nil {
		encoded, err := json.Marshal(result)
		s.fake.Must(err)
		item = encoded
	}
	s.fake.SetResult(card, item)
}

// Cards returns the identifiers that arrived, unmasked and in order: all of the first request,
// then all of the second, and so on. Each retry of a call is a request of its own.
func (s *Server) Cards() []string {
	var cards []string
	for _, r := range s.fake.Requests() {
		var lookup bins.LookupRequest
		if json.Unmarshal(r.Body, &lookup) == nil {
			for _, card := range lookup.Cards {
				cards = append(cards, card.Card.Reveal())
			}
		}
	}
	return cards
}
