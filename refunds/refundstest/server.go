package refundstest

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

// A Server is a fake of the refund ingestion that lives as long as a test.
type Server struct {
	fake *sandbox.Fake
}

// NewServer starts a fake, and ends it with the test. Inside a testing/synctest
// bubble, start it there.
func NewServer(tb TB) *Server {
	tb.Helper()
	return &Server{sandbox.NewFake(tb, sandbox.Refunds)}
}

// Client returns a client of the fake. An option that NewClient refuses fails
// the test.
func (s *Server) Client(opts ...refunds.Option) *refunds.Client {
	opts = append([]refunds.Option{refunds.WithHTTPClient(s.HTTPClient())}, opts...)
	c, err := refunds.NewClient(sandbox.BaseURL, opts...)
	s.fake.Must(err)
	return c
}

// SetResponse sets the answer to a well-formed refund; it is 200 with {} at first. At a
// status of 300 and above the refund does not count as recorded.
func (s *Server) SetResponse(status int, contentType, body string) {
	s.fake.SetRefundResponse(status, contentType, body)
}

// A Recorded refund is one that the fake processed, whatever it answered.
type Recorded struct {
	At        time.Time
	AccountID string
	Refund    refunds.Refund
}

// Recorded returns the refunds that the fake processed, in order, the latest
// 10,000 of them. It is the truth that an outcome is to be compared with: a
// refund_id that stands in it twice was recorded twice. Numbers in metadata are
// json.Number.
func (s *Server) Recorded() []Recorded {
	var recorded []Recorded
	for _, r := range s.fake.Refunds() {
		entry := Recorded{At: r.Time, AccountID: r.AccountID}
		decoder := json.NewDecoder(bytes.NewReader(r.Body))
		decoder.UseNumber()
		s.fake.Must(decoder.Decode(&entry.Refund))
		recorded = append(recorded, entry)
	}
	return recorded
}
