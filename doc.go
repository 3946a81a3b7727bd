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
//   - [github.com/carddata/carddata-go/refunds/outbox], a module of its own, submits each
//     refund once, from a database.
//
// This page says what holds for all of them. NewClient takes the base URL, what the area needs for
// authentication, and options. A CallOption can also be given to a single call, where it wins over the
// client's.
//
// "Not documented" means that the service description does not say it. The library then passes
// values on as they are, or says what it assumes. .github/UNDOCUMENTED.md lists these places.
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
//	│      │   is the service down?                    │  │
//	│      │   token source                            │  │
//	│      │   Retry-After, limiter                    │  │
//	│      │   place in flight                         │  │
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
// # Errors
//
// Every failed call of a client returns an *Error of its package. errors.Is finds its conditions, which are the
// same values in all three packages. An error can match several.
//
//	ErrInvalidArgument   correct the argument or the option
//	ErrLocalLimit        allow more, or more time; without time, context.DeadlineExceeded matches, too
//	ErrCredential        check the token source; after a 401, ErrUnauthorized matches, too
//	ErrNoResponse        try later; if it persists, check the base URL, the network and the certificates
//	ErrTimeout           try later
//	ErrBadRequest        correct the request
//	ErrUnauthorized      replace the credential: it is wrong or expired
//	ErrForbidden         check what the credential may do, or who may use the proxy
//	ErrNotFound          check the id and the base URL
//	ErrTooLarge          send less
//	ErrRateLimited       wait for RetryAfter, and send less often
//	ErrServer            try later, unless it is 501 or 505
//	ErrBadResponse       check the base URL and the proxies; a lookup's response has 8 MiB at most
//
// If the call's own context has ended, context.DeadlineExceeded or context.Canceled matches, and not
// ErrTimeout. For a refund, refunds.ActionOf says what to do.
//
// Retryable says whether the same call can succeed later, and RetryAfter when. It is true after a timeout, a
// 429, most 5xx, a broken connection, a failed token source, a limit, a pause, a job that is not ready, and
// the end of the context, and false after an HTML page.
//
// Condition names the error for metrics. If several apply, one that the service reported comes first:
//
//	all      invalid_argument unauthorized forbidden not_found conflict too_large rate_limited server_error
//	         redirect bad_response bad_request timeout no_response local_limit no_credential canceled
//	         deadline_exceeded other
//	bins     missing closed suspended
//	refunds  suspended not_begun
//	updater  busy changed not_ready refused unverified
//
// The text and the fields hold no card number, credential, id, URL or body. Code and RequestID come from the
// service, and are empty if they look unsafe or repeat a credential or an id of yours.
//
// # Retries
//
// A lookup or a download only reads, so it is retried freely. A refund is retried only if it cannot have been
// recorded. The table has the most retries of a call. n is that of WithMaxRetries, by default 3 for a read
// and 2 for a refund:
//
//	after                                           a read   a refund
//	no connection was made                          n        n
//	a 429 that a limiter signs                      n        n
//	a connection that broke                         n        0
//	any other 429, 502, 503, 504                    n        0
//	a timeout, 408, 500, any other 5xx              2        0
//	a 4xx that IANA does not register, such as 499  2        0
//	401, if there is another token                  1        1
//	a proxy that could not connect                  1        1
//	421, 425                                        1        0
//	no HTTP, or not the documented JSON             1        0
//
// Nothing else is retried: any other status, 501 and 505, an HTML page, an unknown host name, a failed
// TLS handshake, a proxy that forbids the connection, a limiter that fails. With
// refunds.WithResubmit, a refund is retried as a read is. LookupAll and SubmitAll also send a card or
// refund again later, as often as it takes, which is no retry.
//
// A retry waits for a random time of up to 200 ms, which doubles with each retry up to 5 s (WithRetryWait), but
// not above a quarter of the time before the deadline. After a 429 it begins at a second, and the deadline does
// not shorten it. All calls of a client share a retry budget, so that retries do not multiply the load of an
// outage: a hundred retries at first, one more for each five calls that need none, and a retry that succeeds is
// free. An error says if the budget is spent.
//
// # Retry-After
//
// After a 429, 502, 503 or 504 with a Retry-After, the retry of that call waits as long. After a longer
// one than 60 s there is no retry, and the error has it as RetryAfter.
//
// After three such responses to an account without a success of it between them, all calls of that account
// wait for as long, for a minute and an eighth at most. The account is that of a refund, the merchant of a download,
// and in bins the client. Other accounts do not wait. A call whose deadline comes first fails at once, and
// its RetryAfter is the time that is left.
//
// # Load and outages
//
// A client adapts how many requests are in flight to what the service accepts. In refunds this holds for all
// calls of a client together, and in bins for each LookupAll and each Loader. Client.Lookup and downloads are
// sent as they come: set WithRateLimit if you know of a limit. After a rest, limit + burst can leave within
// one second, so use a burst of 1 below a strict limit. Clients do not know of each other, so use one for a
// service.
//
//   - A failure says something of its own request, and delays no other. Only a 429, a 503, and responses
//     that all take twice as long as at best, are signs of too much load. A Retry-After that is rare, or that
//     one account gets while others are accepted, is no sign of load. In SubmitAll and LookupAll any other
//     5xx is one, too, unless sending less does not make them rarer. What is too much waits. A Submit or Load
//     is not sent if it has waited and too little time is left for a response.
//   - The service is down if 30 different refunds or cards fail without a success between them, or five over
//     at least a minute. A request without a response counts after four times the usual time. A 4xx does
//     not count, except 429, 407, and a 401 of the client's own credential.
//   - While the service is down, it gets one request at a time as a probe: the next call that is due. It is
//     sent at most 30 s after the one before, but not before that has ended. The first one that succeeds ends
//     the outage; a refusal such as a 422 does not. LookupAll and SubmitAll wait for that. Other calls fail
//     at once with ErrSuspended and the time to the next probe as RetryAfter.
//
// A new client begins with ten requests in flight, and may have twice as many after each fifth of a second,
// or one more for each success. The README of internal/flow says what failures, limits and outages cost.
//
// # Credentials
//
// A TokenSource is asked before every attempt, by one call at a time. After a 401 it is asked once more, and
// another token is tried. A source that caches its token should have a method Refused(token string). It is
// called after the 401, and drops this token, but keeps a newer one. CachedToken does so. Besides:
//
//   - All callers wait for one fetch. Its context has the values of the first caller, and ends after 30
//     seconds. It goes on if the callers end before: the next one gets the token.
//   - In the last tenth to fifth of its lifetime, a token is renewed in the background.
//   - If fetch fails, the calls that waited fail with its error and ErrCredential. The next call fetches again.
//
// # Deadlines
//
// Every call ends by its deadline, and no request begins to leave after it, even if the machine was
// suspended. Code of yours that gets a context, such as a token source, a limiter or a wrapper, ends with it,
// as everywhere in Go. A call also waits for your logger, and a bulk call for its loop, input and
// functions. A panic of your code reaches the goroutine that made the call, or that runs the loop.
//
// # Logs
//
// With WithLogger, a client logs
//
//   - at debug: "attempt"; "call" that succeeded, or was not sent because the service is down; "content" of a
//     download that was read whole
//   - at info: "call" that failed; "retry"; "pause", when the service asks calls to wait or is down; "resume"
//     after a pause; "reconnect" of a broken download; "content" that broke
//   - at warn: "retry budget spent"; "results lost" by leaving the loop of SubmitAll
//
// Each request of a bulk call, each resume of a download and each request for a job that is not ready is a
// "call".
//
// The attributes are service, operation, route (without ids), attempt, attempts, status, queued (before the
// attempt was sent; in a call the sum, if it is over a second), duration, wait, until, bytes, result (in words),
// condition, outcome and request_id. examples/engines/telemetry makes metrics of them.
//
// # Defaults
//
//	                        bins               refunds            updater
//	WithMaxRetries          3                  2                  3 for each request
//	WithAttemptTimeout      10 s               35 s               30 s to the header and for each wait for content
//	call without deadline   30 s               90 s               until no byte has come for 5 minutes
//	bulk call without one   no end             no end
//	response                8 MiB              64 KiB are kept    no limit
//	connections             idle for 30 s      one for each       one for each request
//	                                           request, ahead
//	redirects               none               none               5, within the origin (WithRedirectHosts)
//
// All connect within 5 s, and make a TLS handshake within 5 s. They use HTTP/1.1, TLS 1.2 or later, the
// environment's proxy (HTTPS_PROXY, NO_PROXY) for https, and a header of 64 KiB at most. A connection keeps its
// client certificate while it is used: to rotate it at once, make a new client. There is no rate limit and no
// log unless you set one.
//
// # Where to find things
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
// show a quota and a cache shared by processes, a pipeline, and telemetry.
package carddata
