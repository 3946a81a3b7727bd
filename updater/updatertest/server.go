package updatertest

import (
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/updater"
)

// A Server is a fake of the account updater download that lives as long as a
// test.
type Server struct {
	fake *sandbox.Fake
}

// NewServer starts a fake, and ends it with the test. Inside a testing/synctest
// bubble, start it there.
func NewServer(tb TB) *Server {
	tb.Helper()
	return &Server{sandbox.NewFake(tb, sandbox.Updater)}
}

// Client returns a client of the fake for the merchant "test-merchant". An
// option that NewClient refuses fails the test.
func (s *Server) Client(opts ...updater.Option) *updater.Client {
	opts = append([]updater.Option{updater.WithHTTPClient(s.HTTPClient())}, opts...)
	c, err := updater.NewClient(sandbox.BaseURL, "test-merchant", updater.StaticToken("test-token"), opts...)
	s.fake.Must(err)
	return c
}

// SetJob makes content available as the result of a job. An empty contentType
// is detected from the content, which must not change afterwards.
func (s *Server) SetJob(jobID, contentType string, content []byte) {
	s.fake.SetJob(jobID, sandbox.Job{ContentType: contentType, Body: content})
}
