package refundstest

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

// A Fault changes how the fake handles one request. The zero value changes nothing. Fields
// can be combined.
type Fault struct {
	// Status replaces the normal status. With 300 and above the body is an error object,
	// and the request is not processed unless Process is set. Zero changes nothing.
	Status int
	// RetryAfter adds a Retry-After header in seconds, rounded up. Zero adds one of a second to
	// a 429, as a limiter does, and none to any other status. Below zero adds none.
	RetryAfter time.Duration
	// Body replaces the normal body, for example with "{" for malformed JSON. "" changes
	// nothing: see NoBody.
	Body string
	// NoBody sends no body.
	NoBody bool
	// ContentType replaces the normal Content-Type, for example with the default of many web
	// frameworks, "text/html; charset=utf-8". A nil value in Header sends none.
	ContentType string
	// Header is set in the response header, such as a Location. A name with a nil value
	// is removed from it.
	Header http.Header
	// Process processes the request even if Status is 300 or above.
	Process bool
	// Refuse refuses the connection before any byte of the request is sent. It works
	// with Script only: from ScriptFunc, or at the address of [Server.URL], it acts as
	// DropBefore, because the connection exists by then. If you wrap the RoundTripper of
	// HTTPClient, a client of package refunds reports an unknown outcome and not "not sent".
	Refuse bool
	// DropBefore resets the connection without reading the request's body. The request is
	// not processed.
	DropBefore bool
	// DropAfter processes the request and resets the connection instead of
	// responding.
	DropAfter bool
	// HeaderDelay is a wait after processing and before the response header.
	HeaderDelay time.Duration
	// BodyDelay is a wait in the middle of the response body.
	BodyDelay time.Duration
	// DelayAfter is the number of bytes of the body before BodyDelay. Zero is half of
	// the body; below zero the wait is before the first byte.
	DelayAfter int
	// Truncate ends the connection after this many bytes of a longer body; Content-Length
	// announces the whole body. Zero sends the whole body; below zero only the header is
	// sent.
	Truncate int
	// Chunked sends the body in chunks, without Content-Length.
	Chunked bool
	// Unframed sends the body without Content-Length and without chunks. The end of the
	// connection is then the end of the body, even if Truncate cut it off.
	Unframed bool
}

// A Request is a request that the fake received.
type Request struct {
	// Time is when the request arrived.
	Time time.Time
	// Method is the HTTP method.
	Method string
	// Path is the escaped path, as it arrived.
	Path string
	// Header is the request header, with the credential in Authorization replaced by
	// stars.
	Header http.Header
	// Body is the request body, up to 1 MiB. It is empty if the fault is DropBefore.
	Body []byte
	// Status is the status of the response; 0 while there is none.
	Status int
	// Sent is the number of bytes of the response body sent so far.
	Sent int64
}

// HTTPClient returns an HTTP client that reaches the fake in memory, under any base
// URL. Code under test that makes its own client takes it through WithHTTPClient.
// Inside a testing/synctest bubble, waits take no real time. To test code that uses
// WithTransport, which is refused beside it, wrap the client's Transport instead.
func (s *Server) HTTPClient() *http.Client { return s.fake.HTTPClient() }

// URL returns a base URL of the fake on the loopback interface, for code that only takes
// an address. The first call opens it. Do not use it inside a testing/synctest bubble: its
// network is real, so the bubble's time may stand still while a response is awaited.
func (s *Server) URL() string { return s.fake.URL() }

// Script adds faults. Each request that arrives takes the next one; the zero Fault lets it
// pass. After the last one the fake behaves normally again. Each retry of a call is a
// request of its own.
func (s *Server) Script(faults ...Fault) {
	for _, f := range faults {
		s.fake.Script(sandbox.FaultOf(f))
	}
}

// ScriptFunc lets choose return the fault of each request for which Script has none left,
// for example to fail a share of the requests or one kind of them. choose is called from
// many goroutines at once, and replaces an earlier function; nil goes back to normal
// behavior. The Request that it gets has no Body. Refuse in the Fault that it returns acts
// as DropBefore: to refuse the next n connections, use
//
//	Script(slices.Repeat([]Fault{{Refuse: true}}, n)...)
func (s *Server) ScriptFunc(choose func(Request) Fault) {
	if choose == nil {
		s.fake.ScriptFunc(nil)
		return
	}
	s.fake.ScriptFunc(func(r sandbox.Request) sandbox.Fault { return sandbox.FaultOf(choose(Request(r))) })
}

// RevokeToken makes the fake refuse the token with 401, from the next request on. So a
// test can revoke a token that its source, such as CachedToken, still considers valid.
func (s *Server) RevokeToken(token string) { s.fake.RevokeToken(token) }

// Pending returns how many faults of Script no request has taken yet. It is 0 at the end
// of a test if all faults have happened.
func (s *Server) Pending() int { return s.fake.Pending() }

// Requests returns the last 10,000 requests that arrived, in order. A connection that was
// refused brings none.
func (s *Server) Requests() []Request {
	var requests []Request
	for _, r := range s.fake.Requests() {
		requests = append(requests, Request(r.Request))
	}
	return requests
}
