package refundstest

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

// A Server is a fake of POST {refund_url}/v1/{account_id}/refunds.
type Server struct {
	fake *sandbox.Fake
}

// NewServer starts a fake that ends with the test. If you use testing/synctest, call it
// inside the bubble. Outside a test, such as in an Example, tb is nil: end the fake with Close.
func NewServer(tb testing.TB) *Server { return &Server{sandbox.NewFake(tb, sandbox.Refunds)} }

// Close ends the fake. A fake of NewServer is closed at the end of the test.
func (s *Server) Close() { s.fake.Close() }

// Client returns a client of the fake. It reaches the fake by WithHTTPClient, so it cannot
// have WithTransport, WithTLSConfig or WithProxy: for these, give refunds.NewClient the
// address of [Server.URL]. An option that NewClient refuses fails the test.
func (s *Server) Client(opts ...refunds.Option) *refunds.Client {
	opts = append([]refunds.Option{refunds.WithHTTPClient(s.HTTPClient())}, opts...)
	c, err := refunds.NewClient(sandbox.BaseURL, opts...)
	s.fake.Must(err)
	return c
}

// SetResponse sets the response to every well-formed refund, where Fault sets it for
// one request. The default is 200 with {}. With a status of 300 and above, refunds are
// not recorded, not even those that a Fault accepts.
func (s *Server) SetResponse(status int, contentType, body string) {
	s.fake.SetRefundResponse(status, contentType, body)
}

// A Recorded is a refund that the fake processed, under any response.
type Recorded struct {
	At        time.Time      // when the request arrived
	AccountID string         // {account_id} of the path, unescaped
	Refund    refunds.Refund // the record; numbers in Metadata are json.Number
}

// Recorded returns the last 10,000 refunds that the fake processed, in order. Compare
// outcomes with it: a refund_id that occurs twice was recorded twice.
func (s *Server) Recorded() []Recorded {
	var recorded []Recorded
	for _, r := range s.fake.Refunds() {
		refund, err := decode(r.Body)
		s.fake.Must(err)
		recorded = append(recorded, Recorded{r.Time, r.AccountID, refund})
	}
	return recorded
}

// Submitted returns the refunds that arrived with a readable body, in order, whether or
// not they were recorded. Each retry of a call is a request of its own. Numbers in
// Metadata are json.Number.
func (s *Server) Submitted() []refunds.Refund {
	var submitted []refunds.Refund
	for _, r := range s.fake.Requests() {
		if refund, err := decode(r.Body); err == nil {
			submitted = append(submitted, refund)
		}
	}
	return submitted
}

func decode(body []byte) (refund refunds.Refund, err error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	err = decoder.Decode(&refund)
	return refund, err
}
