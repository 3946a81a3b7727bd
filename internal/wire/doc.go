// Package wire knows how one request leaves, and what is proven of it.
//
// A [Network] sends the request of an [Exchange] once. The exchange is then the evidence of it:
// above all how many bytes left.
//
//   - network.go: the library's own HTTP transport, its timeouts and proxy; the caller's instead.
//   - connection.go: a connection counts its bytes, and refuses a request that would be lost.
//   - ahead.go: the connection of a write is dialled ahead.
//   - evidence.go: the events of a connection become evidence.
//   - wrapper.go: the rules for a RoundTripper of the caller around the library's transport.
//
// It knows no call, no retry and no status: what a response means is decided in fault, and
// whether another request follows in transport.
//
// # What must stay true
//
//   - No byte of a write leaves twice in one exchange, and none after its deadline, by the
//     monotonic or the wall clock.
//   - Evidence is a proof. The type or text of an error is none.
//   - A response that began before its request is seen as such.
package wire
