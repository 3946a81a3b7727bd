package updatertest

import (
	"net/http"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// A Fault changes how the fake handles one request. The three fakes have the same.
type Fault = refundstest.Fault

// A Request is a request that the fake received.
type Request = refundstest.Request

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

// ScriptFor makes f the fault of each request that carries text as a whole value, such as the job in its path,
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
