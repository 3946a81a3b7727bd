package updatertest

import (
	"io"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/updater"
)

// A Server is a fake of GET {updater_url}/updater/inquiries/jobs/{jobId}/download.
type Server struct {
	fake *sandbox.Fake
}

// NewServer starts a fake that ends with the test. If you use testing/synctest, call it
// inside the bubble. Outside a test, such as in an Example, tb is nil: end the fake with Close.
func NewServer(tb testing.TB) *Server { return &Server{sandbox.NewFake(tb, sandbox.Updater)} }

// Close ends the fake. A fake of NewServer is closed at the end of the test.
func (s *Server) Close() { s.fake.Close() }

// Client returns a client of the fake for the merchant "test-merchant". It reaches the
// fake by WithHTTPClient, so it cannot have WithTransport, WithTLSConfig or WithProxy: for these, give
// updater.NewClient the address of [Server.URL]. An option that NewClient refuses fails the test.
func (s *Server) Client(opts ...updater.Option) *updater.Client {
	opts = append([]updater.Option{updater.WithHTTPClient(s.HTTPClient())}, opts...)
	c, err := updater.NewClient(sandbox.BaseURL, "test-merchant", updater.StaticToken("test-token"), opts...)
	s.fake.Must(err)
	return c
}

// A Job is the result of a job, of any size.
type Job struct {
	// Content is what a download returns: strings.NewReader("text"), bytes.NewReader(data),
	// [CSV], or the like. It is read while it is sent, from many
	// goroutines at once, and must not change. Nil is empty.
	Content interface {
		io.ReaderAt
		Size() int64
	}
	// ContentType is the Content-Type of the response; "" detects it from the content.
	ContentType string
	// Merchant limits the content to the requests of one merchant, for which it wins over
	// content for every merchant. "" is every merchant.
	Merchant string
	// ETag is sent unchanged, so include the quotes. An empty string sends none. Nil
	// sends a strong ETag made from the size and the first MiB.
	ETag *string
	// LastModified is the Last-Modified of the response; zero sends none.
	LastModified time.Time
	// NoRanges makes the fake ignore Range and not announce support for it.
	NoRanges bool
}

// SetJob sets the result of a job, from the next request on.
func (s *Server) SetJob(jobID string, j Job) { s.fake.SetJob(jobID, sandbox.Job(j)) }

// CSV returns content of exactly size bytes, generated as it is read. It has the columns of
// job 42. Each row has its number in it, so that no two parts are alike, and line breaks
// fill the rest up to size. The same size gives the same content.
func CSV(size int64) *io.SectionReader { return sandbox.Synthetic(sandbox.CSV, size) }
