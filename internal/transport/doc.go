// Package transport is the one way out of the module: options, credentials,
// rate limits, retries, the evidence of what was sent, and failures. It knows no
// service; bins, refunds and updater tell it what to send and what may be
// repeated.
//
// # The loop
//
//	 bins, refunds, updater      a Call: method, path, body, and whether it is a Write
//	        │         ▲
//	        ▼         │ Result: a response, or a Failure; Outcome and Evidence
//	 Client.Do ───────┤                                                    call.go
//	        │         │ invocation.result
//	        ▼         │
//	┌ go-retryablehttp.Client.Do ◄──────────────────┐
//	│       │  rewinds the body                     │ sleeps for invocation.wait
//	│       ▼                                       │
//	│  http.Client.Do   follows redirects as        │
//	│       │           checkRedirect allows        │
//	│       ▼                                       │
//	│  invocation.RoundTrip                         │                   attempt.go
//	│       │  prepare: token, throttle, header     │         token.go throttle.go
//	│       │  send: the caller's http.Client, or   │
//	│       │        a wrapper of the caller's      │
//	│       │        and the library's transport,   │         network.go
//	│       │        which a connTrace watches      │
//	│       │  receive: bounded body, or a stream   │                    stream.go
//	│       │  verdict: what the attempt came to    │                    policy.go
//	│       ▼                                       │
//	└► invocation.shouldRetry ──────────────────────┘                      call.go
//	          policy, Retry-After, deadline, fresh token, retry budget
//
// A call makes one invocation, which is at once the RoundTripper that makes its
// attempts and the policy between them. It lives as long as the call.
//
// # Why go-retryablehttp is driven like this
//
// The library brings what is tedious to get right: it rewinds the body, sleeps
// until the context ends, and has been read by many. Its defaults are made for
// requests that may be repeated, and would do harm here:
//
//   - Its CheckRetry sees a response or an error, and repeats a POST after a broken
//     connection or a 502. Whether a refund may be repeated is in the bytes that
//     left, so that shouldRetry looks at the attempt and its evidence.
//   - Its Backoff obeys any Retry-After, for years if need be, and overflows. Ours
//     is full jitter, and ends the call when a wait would outlast the deadline.
//   - It closes the idle connections of its http.Client whenever a call fails. For
//     this the RoundTripper it gets has no CloseIdleConnections.
//   - It logs requests and gives up with errors that quote the URL. It gets no
//     logger, and its error is not used.
//   - Its hooks are told neither which call they are for nor what an attempt has
//     found. Therefore each call has a retryablehttp.Client of its own, one literal
//     whose hooks are methods of the invocation.
//
// # Glossary
//
//   - call: what a user of the module asked for; Do makes it.
//   - attempt: one request on the network. A call has one or more.
//   - verdict: how an attempt ended, one of a closed list, and what follows from it.
//     All verdicts together are the policy.
//   - retry: a further attempt of a call. Resume: a further call for the rest of
//     a stream.
//   - write: a call that does harm if the service processes it twice.
//   - evidence: what the connection's events prove, foremost how many bytes left.
//   - outcome: what became of a write: accepted, rejected, not sent, or unknown.
//   - ambiguous: said of an attempt that may have been processed.
//   - cooldown: the time for which the service asked all calls to stay away.
//   - wrapper: a RoundTripper of the caller's around the library's transport
//     (WithTransport). The evidence is taken below it.
//   - throttle: the cooldown and the caller's Limiter, which each attempt passes.
//   - retry budget: bounds the retries of all calls of a client.
//   - condition: what errors.Is finds, such as ErrRateLimited, with its name for
//     metrics.
//   - echo: a secret or id of the caller's that the service repeats.
//
// # Where to look
//
//   - how a status, a body or a network error is understood, how often it is retried,
//     what became of a write, and what the error says: policy.go
//   - what it takes for a retry beside that, in which order: shouldRetry in call.go
//   - how long a retry waits, and what holds requests back: throttle.go
//   - how it is known what left this machine: network.go
//   - what may be printed or logged: log.go, and the texts in errors.go
//   - a further operation of the service is a Call, in the package of its endpoint;
//     nothing here has to change for it
//
// # What must stay true
//
// Whoever changes this package keeps these, whatever else moves:
//
//   - A write is sent a second time only if the attempt before proves that the service
//     has not processed the first: no byte of it left, or a status says so. An opinion
//     about an error, its type or its text, is no proof. The one exception is the
//     caller's word that the service removes duplicates (WithRepeatUnknown).
//   - What is not known is called unknown. The zero values are the careful ones.
//   - A call ends by its deadline, whatever a server, a proxy, a token source, a limiter
//     or a wrapper does, and leaves at most one goroutine for each source that hangs, or
//     for each option with it where the source is of a type of the caller's.
//   - Nothing that the service or the caller wrote reaches a log or the text of an
//     error, but a code and a request id of harmless form. Whatever else an error or an
//     option holds lies in closures, because fmt follows every field and pointer.
//   - While the service has asked for a pause, no attempt of any call is sent, and
//     retries cannot multiply the load of an outage.
//   - What a response can cost is bounded: its header, its body, the time for it, and
//     the wait that it asks for.
//
// # How many files a call enters
//
// A reader who follows a call from top to bottom opens as many files as it
// enters. To list them, for a client that has made a call before:
//
//	go run -cover -covermode=atomic -coverpkg=./bins,./refunds,./updater,./internal/... ./internal/callpath
package transport
