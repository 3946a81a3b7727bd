// Package carddata is the map of a client for a Card Data Service. It holds no
// code: import the package of the area that you use.
//
//   - [github.com/carddata/carddata-go/bins] looks cards up, 1 to 50 in a request.
//   - [github.com/carddata/carddata-go/refunds] submits refund records, and tells
//     for certain what became of each, or that this cannot be known.
//   - [github.com/carddata/carddata-go/updater] downloads the results of account
//     updater jobs, as files or streams of any size.
//   - bins/binstest, refunds/refundstest and updater/updatertest fake the service
//     in process, for the tests of code that uses the three.
//
// The three share one design: NewClient takes the base URL, what the area needs
// for authentication, and options; a [github.com/carddata/carddata-go/bins.Option]
// given to a call wins over the client's; failures are an Error of the package,
// with conditions for errors.Is that are the same values in all three.
//
// # What happens in a call
//
//	   your code
//	       │ typed request
//	┌──────▼───────┐
//	│   validate   │ what the contract and the wire rule out: nothing is sent
//	│ encode, once │
//	└──────┬───────┘
//	┌──────▼──────────────────────────────────────────────┐
//	│ retry loop: policy, random wait, budget, deadline   │
//	│      ┌───────────────────────────────────────────┐  │
//	│      │ one attempt                               │  │
//	│      │   token source                            │  │
//	│      │   pause the service asked for, limiter    │  │
//	│      │   your wrapper around the transport ──────┼──┼──▶ service
//	│      │   evidence: did a byte leave?             │  │
//	│      │   bounded read, or a stream               │  │
//	│      │   classify by evidence and status         │  │
//	│      └───────────────────────────────────────────┘  │
//	└──────┬──────────────────────────────────────────────┘
//	┌──────▼──────┐
//	│   decode    │
//	└──────┬──────┘
//	       │ typed result, or typed error
//	       ▼
//
// # Where to find things
//
// The comments cite the interface, which is the service's own description of
// its endpoints and fields. Where that is silent, the library passes values on
// as they are, or says what it assumes. The README lists those places.
package carddata
