package updatertest

import (
	"net/http"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// TB is the part of *testing.T, *testing.B and *testing.F that a fake needs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// A Fault says what befalls one request. The zero value is ordinary service.
// Fields combine.
type Fault struct {
	// Status replaces the ordinary status. At 300 and above the request is not
	// processed, unless Process is set, and the body is an error object.
	Status int
	// RetryAfter adds a Retry-After header in seconds, rounded up.
	RetryAfter time.Duration
	// Body replaces the ordinary body: set it to "{" for a malformed one.
	Body string
	// NoBody answers without any body.
	NoBody bool
	// ContentType replaces the ordinary Content-Type.
	ContentType string
	// Header is set in the answer's header, such as a Location. A name with a nil
	// value is taken out of it.
	Header http.Header
	// Process processes the request although Status says otherwise.
	Process bool
	// Refuse refuses the connection before any byte of the request leaves. At the
	// address of [Server.URL], where the connection is made by then, it is
	// DropBefore.
	Refuse bool
	// DropBefore resets the connection without reading the request's body.
	DropBefore bool
	// DropAfter processes the request and resets the connection instead of
	// answering.
	DropAfter bool
	// HeaderDelay passes after processing and before the answer's header.
	HeaderDelay time.Duration
	// BodyDelay passes in the middle of the answer's body.
	BodyDelay time.Duration
	// DelayAfter moves BodyDelay behind so many bytes of the body, or, if it is
	// negative, before the first.
	DelayAfter int
	// BytesPerSecond slows the body down.
	BytesPerSecond int
	// Truncate ends the connection after so many bytes of a longer body, of which
	// Content-Length announces the whole. A negative value sends the header only.
	Truncate int
	// Chunked sends the body in chunks, without Content-Length.
	Chunked bool
	// Unframed sends the body without Content-Length and without chunks, so that
	// the end of the connection is its end, also where Truncate cut it off.
	Unframed bool
	// Range is what a download answers in place of the request's Range and
	// If-Range, as in "bytes=100-199".
	Range string
}

// A Request is what arrived.
type Request struct {
	Time   time.Time
	Method string
	// Path is escaped, as it came.
	Path string
	// Header has the credential in Authorization replaced by stars.
	Header http.Header
	// Body is empty when the fault is DropBefore, and ends at 1 MiB.
	Body []byte
	// Status is the status answered, 0 while there is none.
	Status int
	// Sent is how many bytes of the answer's body were sent so far.
	Sent int64
}

// HTTPClient returns a client that reaches the fake in memory under any address
// that NewClient takes, for code that makes its own client with WithHTTPClient. Inside
// a testing/synctest bubble time passes at once.
func (s *Server) HTTPClient() *http.Client { return s.fake.HTTPClient() }

// URL returns a base URL on the loopback interface under which the fake can be
// reached too, for code that can only be given an address. The first call opens
// it. Inside a testing/synctest bubble time can stand still while it answers.
func (s *Server) URL() string { return s.fake.URL() }

// Script adds faults. Each request takes one, in order of arrival; after the
// last, service is ordinary again. Repeated attempts of a call are requests of
// their own.
func (s *Server) Script(faults ...Fault) {
	for _, f := range faults {
		s.fake.Script(sandbox.Fault(f))
	}
}

// ScriptFunc makes choose say what befalls each request for which the script has
// nothing: such as a share of them, or each of one kind. It is called from many
// goroutines at once, without the request's body. Its Refuse is DropBefore.
func (s *Server) ScriptFunc(choose func(Request) Fault) {
	s.fake.ScriptFunc(func(r sandbox.Request) sandbox.Fault { return sandbox.Fault(choose(Request(r))) })
}

// Pending returns how many faults no request has taken yet: a test that expects
// a number of attempts ends with 0.
func (s *Server) Pending() int { return s.fake.Pending() }

// Requests returns the requests that arrived, in order, the latest 10,000 of
// them. A refused connection brings none.
func (s *Server) Requests() []Request {
	var requests []Request
	for _, r := range s.fake.Requests() {
		requests = append(requests, Request(r.Request))
	}
	return requests
}
