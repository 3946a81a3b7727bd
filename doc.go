// Package carddata is the front page of a client for a Card Data Service. It holds no
// code: import the package of the area that you use.
//
//   - [github.com/carddata/carddata-go/bins] looks up cards, 1 to 50 in a request or
//     any number in bulk.
//   - [github.com/carddata/carddata-go/refunds] submits refund records, and says of
//     each whether it was accepted, rejected or not sent, or that nobody can know.
//   - [github.com/carddata/carddata-go/updater] downloads the results of account
//     updater jobs, as files or streams of any size.
//   - bins/binstest, refunds/refundstest and updater/updatertest fake the service
//     in process, for tests of code that uses the three.
//
// The three share one design. NewClient takes the base URL, what the area needs for
// authentication, and options. Most options can also be given to a single call, where
// they win over the client's: see [github.com/carddata/carddata-go/bins.Option].
// Failures are an Error of the package, with conditions for errors.Is that are the same
// values in all three.
//
// # What happens in a call
//
//	   your code
//	       │ typed request
//	┌──────▼───────┐
//	│   validate   │ an unusable argument ends the call: nothing is sent
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
// The service description is the document in which the service describes its endpoints
// and fields. Each package comment sums up its part, and "not documented" means that the
// description does not say it. The library then passes values on as they are, or says
// what it assumes. The README lists these places.
//
// The programs in examples do what production needs: bulk files, downloads, a refund
// outbox, a quota shared between processes, and telemetry.
package carddata
