package updatertest

import (
	"bytes"
	"io"
	"time"

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
	s.SetJobContent(jobID, JobContent{Content: bytes.NewReader(content), ContentType: contentType})
}

// JobContent is the result of a job, of any size.
type JobContent struct {
	// Content is, for example, a *bytes.Reader, a *strings.Reader or an
	// *io.SectionReader, such as [CSV] returns. It is read as it is sent, by many
	// goroutines at once, and must not change. nil is empty.
	Content interface {
		io.ReaderAt
		Size() int64
	}
	// ContentType is detected from the content when empty.
	ContentType string
	// Merchant is the only one who gets this, ahead of what every merchant gets
	// under the same job id; "" is every merchant.
	Merchant string
	// ETag is sent as it is, with its quotes; one that is empty is not sent. nil
	// stands for a strong one, made of the size and the first MiB.
	ETag *string
	// LastModified is not sent when zero.
	LastModified time.Time
	// NoRanges ignores Range, and does not offer it.
	NoRanges bool
}

// SetJobContent makes c available as the result of a job, from the next request
// on.
func (s *Server) SetJobContent(jobID string, c JobContent) {
	s.fake.SetJob(jobID, sandbox.Job(c))
}

// CSV returns content of exactly size bytes, made up as it is read: the columns
// of job 42, and a number for each row. It is the same every time, and no part of
// it can pass for another. What rows do not fill up to size are line breaks.
func CSV(size int64) *io.SectionReader { return sandbox.Synthetic(sandbox.CSV, size) }
