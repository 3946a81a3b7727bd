package refundstest

import (
	"net/http"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// A Fault changes how the fake handles one request. The zero value changes nothing, and fields
// can be combined. The three fakes have the same.
type Fault struct {
	// Status replaces the normal status. With 300 and above the body is an error object, and
	// the request is not processed.
	Status int
	// RetryAfter adds a Retry-After header in seconds, rounded up. Zero adds one of a second to
	// a 429, as a limiter does, and none to any other status. Below zero adds none.
	RetryAfter time.Duration
	// Header is set in the response, such as a Location or another Content-Type. A name with a
	// nil value is removed from it: without Content-Length, the body is sent in chunks.
	Header http.Header
	// Body replaces the normal body: new("{") is malformed JSON, and new("") none. Nil
	// changes nothing.
	Body *string
	// Process processes the request although Status or Drop says otherwise.
	Process bool
	// Refuse refuses the connection before any byte of the request is sent. At the address of
	// [Server.URL] the connection exists by then, and Refuse acts as Drop. Behind a wrapped
	// Transport of HTTPClient, a refund is then unknown and not "not sent".
	Refuse bool
	// Drop resets the connection in place of the response. Without Process, the request's body
	// is not read.
	Drop bool
	// Delay is a wait before the response, or with Truncate before the connection ends.
	Delay time.Duration
	// Truncate ends the connection after this many bytes of a longer body. Below zero, only
	// the header is sent.
	Truncate int
}

// A Request is a request that the fake received.
type Request struct {
	Time   time.Time   // when it arrived
	Method string      //
	Path   string      // the escaped path, as it arrived
	Header http.Header // with the credential in Authorization replaced by stars
	Body   []byte      // up to 1 MiB; empty if the fault is Drop without Process, from Script
	Status int         // of the response; 0 while there is none
	Sent   int64       // bytes of the response's body sent so far
}

// HTTPClient returns an HTTP client that reaches the fake in memory, under any base URL. Code
// that makes its own client takes it through WithHTTPClient. Inside a testing/synctest bubble,
// waits take no real time. Wrap its Transport to test code that uses WithTransport, which is
// refused beside WithHTTPClient.
func (s *Server) HTTPClient() *http.Client { return s.fake.HTTPClient() }

// URL returns a base URL of the fake on the loopback interface, for code that only takes
// an address. The first call opens it. Do not use it inside a testing/synctest bubble: its
// network is real, so the bubble's time may stand still while a response is awaited.
func (s *Server) URL() string { return s.fake.URL() }

// Script adds faults. Each request that arrives takes the next one; the zero Fault lets it
// pass. After the last one the fake behaves normally again. Each retry of a call is a request
// of its own. For a fault that lasts, use
//
//	Script(slices.Repeat([]Fault{{Status: 503}}, 100)...)
func (s *Server) Script(faults ...Fault) {
	for _, f := range faults {
		s.fake.Script(sandbox.Fault(f))
	}
}

// ScriptFor makes f the fault of each request that carries text as a whole value, such as a refund_id in its body or the account in its path,
// once the script is empty. The zero Fault ends it. The request has arrived by then, so Refuse
// acts as Drop.
func (s *Server) ScriptFor(text string, f Fault) { s.fake.ScriptFor(text, sandbox.Fault(f)) }

// Pending returns how many faults no request has taken yet. It is 0 at the end of a test if
// all faults have happened.
func (s *Server) Pending() int { return s.fake.Pending() }

// RevokeToken makes the fake refuse the token with 401, from the next request on. So a
// test can revoke a token that its source, such as CachedToken, still considers valid.
func (s *Server) RevokeToken(token string) { s.fake.RevokeToken(token) }

// Requests returns the last 10,000 requests that arrived, in order. A connection that was
// refused brings none.
func (s *Server) Requests() []Request {
	var requests []Request
	for _, r := range s.fake.Requests() {
		requests = append(requests, Request(r))
	}
	return requests
}
