package binstest

import (
	"encoding/json"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// A Server is a fake of the BIN lookup that lives as long as a test.
type Server struct {
	fake *sandbox.Fake
}

// NewServer starts a fake, and ends it with the test. Inside a testing/synctest
// bubble, start it there.
func NewServer(tb TB) *Server {
	tb.Helper()
	return &Server{sandbox.NewFake(tb, sandbox.Bins)}
}

// Client returns a client of the fake. An option that NewClient refuses fails
// the test.
func (s *Server) Client(opts ...bins.Option) *bins.Client {
	opts = append([]bins.Option{bins.WithHTTPClient(s.HTTPClient())}, opts...)
	c, err := bins.NewClient(sandbox.BaseURL, bins.StaticToken("test-key"), opts...)
	s.fake.Must(err)
	return c
}

// SetResult makes result the answer for card and for every identifier that
// begins with it, unless a longer one matches. An empty card answers for all
// identifiers otherwise unknown. result.Raw, if set, is sent in place of the
// other fields.
func (s *Server) SetResult(card string, result bins.Result) {
	item := result.Raw
	if item == nil {
		encoded, err := json.Marshal(result)
		s.fake.Must(err)
		item = encoded
	}
	s.fake.SetResult(card, item)
}

// Lookups returns the lookups that arrived with a readable body, in order.
func (s *Server) Lookups() []bins.LookupRequest {
	var lookups []bins.LookupRequest
	for _, r := range s.fake.Requests() {
		var lookup bins.LookupRequest
		if json.Unmarshal(r.Body, &lookup) == nil {
			lookups = append(lookups, lookup)
		}
	}
	return lookups
}
