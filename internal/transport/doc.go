// Package transport makes every request of the module. It holds the options, credentials,
// rate limits, retries, failures, and the evidence of which bytes were sent. It does not know
// the services: bins, refunds and updater tell it what to send and what it may repeat.
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
//	│       │  prepare: token, throttle, header     │ token.go throttle.go header.go
//	│       │  send: the caller's http.Client, or   │
//	│       │        a wrapper of the caller's      │
//	│       │        and the library's transport,   │ network.go wrapper.go ahead.go
//	│       │        which a connTrace watches      │
//	│       │  receive: bounded body, or a stream   │                    stream.go
//	│       │  verdict: how the attempt ended       │                    policy.go
//	│       ▼                                       │
//	└► invocation.shouldRetry ──────────────────────┘                     retry.go
//	          policy, Retry-After, deadline, fresh token, retry budget
//
// A call makes one invocation, which lives as long as the call. The invocation is the
// RoundTripper that makes the attempts, and also the policy that decides between them.
//
// # Why go-retryablehttp is driven like this
//
// go-retryablehttp does the tedious part: it rewinds the body and sleeps until the context
// ends, and many people have reviewed it. Its defaults assume requests that may be repeated.
// Here they would do harm:
//
//   - Its CheckRetry sees only a response or an error, and repeats a POST after a broken
//     connection or a 502. A refund may be repeated only if it is proven unprocessed, so
//     shouldRetry looks at the attempt and its evidence.
//   - Its Backoff obeys any Retry-After, even one of years, and overflows. Ours is full
//     jitter, and ends the call when a wait would outlast the deadline.
//   - It closes the idle connections of its http.Client whenever a call fails. The
//     RoundTripper that it gets has no CloseIdleConnections, which prevents this.
//   - It logs requests, and its errors quote the URL. It gets no logger, and its error is
//     dropped.
//   - Its hooks do not know their call or what an attempt found. So each call has a
//     retryablehttp.Client of its own, and its hooks are methods of the invocation.
//
// # Glossary
//
//   - call: one operation that a user of the module asked for. Do makes it.
//   - attempt: one request on the network. A call has one or more.
//   - verdict: how an attempt ended, from a closed list. It decides the retries, the outcome,
//     the condition and the scope. All verdicts together are the policy.
//   - scope: the requests that would fail alike: this request, those of its account, every
//     call for now (an outage), or every call until something is changed (the set-up).
//   - retry: a further attempt of a call.
//   - resume: a further call for the rest of a stream.
//   - write: a call that does harm if the service processes it twice.
//   - evidence: what the connection's events prove, above all how many bytes left.
//   - outcome: the fate of a write: accepted, rejected, not sent, or unknown.
//   - ambiguous: an attempt that the service may have processed.
//   - cooldown: the time for which the service asked all calls to stay away. The log and the
//     errors call it a pause.
//   - wrapper: a RoundTripper that the caller puts around the library's transport
//     (WithTransport). The evidence is collected below it.
//   - throttle: the cooldown and the caller's Limiter. Each attempt passes it.
//   - retry budget: bounds the retries of all calls of a client.
//   - condition: an error that errors.Is finds, such as ErrRateLimited. Its name is for
//     metrics.
//   - echo: a secret or id of the caller that the service repeats.
//
// # Where to look
//
//   - the meaning of a status, a body or a network error, with its retries, outcome, scope
//     and error text: policy.go
//   - whether and when an attempt is retried, and the retry budget: retry.go
//   - the limiter, and the pause that the service asked for: throttle.go
//   - the headers of a request: header.go
//   - an error object in a response: errorbody.go; in a stream: lookahead.go
//   - the library's HTTP transport, its timeouts and proxy: network.go
//   - the evidence of what left this machine: evidence.go, connection.go
//   - the connection that a write is sent on: ahead.go
//   - the rules for a RoundTripper of the caller: wrapper.go
//   - the deadline of a call while code of the caller hangs: hold.go
//   - what may be printed or logged: safeerror.go, log.go
//   - a new operation: add a Call in the package of its endpoint; nothing here has to change
//
// # What must stay true
//
//   - Resend a write only when the previous attempt is proven unprocessed: no byte of it
//     left, or its status says so. An error's type or text is no proof. The one exception is
//     WithResubmit, by which the caller states that the service removes duplicates.
//   - If the outcome is not known, say unknown. Zero values are the careful ones.
//   - A response counts only if it came after the request. A response that began earlier is
//     neither an acceptance nor a refusal.
//   - A call ends by its deadline even if a server, a proxy or code of the caller hangs. It
//     leaves at most one goroutine for each that hangs. No write starts to leave after the
//     deadline, by the monotonic or the wall clock.
//   - Logs and error texts never contain data of the caller or the service. The exceptions
//     are an error code and a request id that look harmless and repeat nothing of the caller.
//     Errors and options hold all other data in closures, because fmt follows every field and
//     pointer.
//   - While the service asks for a pause, no call sends an attempt.
//   - Retries cannot multiply the load of an outage.
//   - The cost of a response is bounded: its header, its body, its time, and the wait that it
//     asks for.
package transport
