// Package carddata is the front page of a client for a Card Data Service. It holds no
// code: import the package of the area that you use.
//
//   - [github.com/carddata/carddata-go/bins] looks up cards, 1 to 50 in a request or
//     any number in bulk.
//   - [github.com/carddata/carddata-go/refunds] submits refund records. Each one ends
//     as accepted, rejected, not sent or unknown, with what to do next.
//   - [github.com/carddata/carddata-go/updater] downloads the results of account
//     updater jobs, as files or streams of any size.
//   - bins/binstest, refunds/refundstest and updater/updatertest fake the service
//     in process, for tests of code that uses the three.
//
// The three share one design. NewClient takes the base URL, what the area needs for
// authentication, and options. A CallOption can also be given to a single call, where it wins
// over the client's: see [github.com/carddata/carddata-go/bins.CallOption].
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
// The calls of one client share what they know of the service: a pause that the service asked
// for, and the retry budget. Submit and SubmitAll also share how many requests may be in flight.
//
// # Where to find things
//
// "Not documented" means that the service description, the document in which the service
// describes its endpoints and fields, does not say it. The library then passes values on
// as they are, or says what it assumes. The README lists these places.
//
// Start with these examples of the packages, which pkg.go.dev shows and go doc does not:
//
//   - bins: ExampleClient_Lookup, ExampleClient_LookupAll, ExampleBulkResult, ExampleLoader
//   - refunds: ExampleActionOf, ExampleClient_Submit, ExampleClient_SubmitAll
//   - updater: ExampleClient_DownloadFile, ExampleClient_Download
//   - the fakes: ExampleServer in each of them
//
// Five programs in the folder examples are there to be copied: lookup, refund, bulk, loader
// and download. Those in examples/tools are there to be used, and those in examples/engines
// show a quota and a cache shared by processes, a pipeline, and telemetry. The module
// refunds/outbox submits each refund once, from a database.
package carddata
