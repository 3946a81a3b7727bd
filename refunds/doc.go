// Package refunds submits refund records. A refund is never silently lost and never silently
// sent twice.
//
//	client, err := refunds.NewClient("https://refund.example.com")
//	…
//	receipt, err := client.Submit(ctx, accountID, &refunds.Refund{
//		RefundID: "rf_1001",
//		Amount:   new(int64(10150)),
//		Currency: "USD",
//	})
//	switch refunds.ActionOf(err) {
//	case refunds.ActionDone: // accepted; keep receipt.RequestID
//	case refunds.ActionResubmit: // not recorded; submit it again later
//	case refunds.ActionCorrect: // not recorded; correct the record
//	case refunds.ActionFixSetup: // not recorded; correct the setup
//	default: // it may have been recorded: find out before you submit it again
//	}
//
// Three decisions are yours:
//
//   - After each call, do what [ActionOf] says. The comments of [Action] list the failures that
//     lead to each action. If you use [WithBeforeSend], test for its error first.
//   - For many refunds, use [Client.SubmitAll]. It takes records of any number of accounts, and
//     yields the result of each in bounded memory.
//   - If a refund can come twice, or the process can be killed, use the module refunds/outbox: see
//     below.
//
// The package covers one endpoint of the service:
//
//	POST {refund_url}/v1/{account_id}/refunds
//	Content-Type: application/json
//
// The body is one [Refund]. No credential is part of the request. The service documents the
// name and the JSON type of each field. It does not document which fields are required, their
// formats and lengths, the unit of amount, the values of svc_refund_status but one, or
// anything about the response: status codes, bodies, errors and limits.
//
// # Outcomes
//
// The connection and the status decide the outcome, and never the text of an error. A 2xx must also
// have a body that reports no error:
//
//   - Accepted: a 2xx status. The exceptions are an HTML page, a JSON object whose "error" or
//     "errors" says something (not null, false, 0, blank, or an empty list or object), broken JSON
//     with either name, a body of a content type of RFC 9457 (application/problem+json or +xml), and a
//     receipt that [WithReceiptCheck] refuses.
//   - Not sent: the arguments, the limiter or the token source ended the call, or no byte was
//     written to a connection.
//   - Rejected: 501, 505, each 4xx that IANA registers except 406, 408, 416, 421, 424, 425 and 429, a
//     429 that a limiter signs, what [WithRefusals] names, and a 307 or 308 that leads to the same path,
//     such as on another host, or has no Location. After a 409, an earlier submission may have been
//     recorded.
//   - Unknown: everything else, such as a timeout, a broken connection, a 429 without a signature, a
//     499, or a cancellation after the first byte. A proxy may send 408, 500, 502, 503 or 504, and a
//     service 406, 416, 421, 424, 425 or a redirect to another path, although the refund was recorded.
//     The outcome is also unknown if the response
//     began before the request, or if [WithResubmit] repeated an attempt with an unknown outcome.
//
// A limiter signs a 429 with a Retry-After, or with a remaining count of 0 in RateLimit,
// RateLimit-Remaining, X-RateLimit-Remaining or X-Rate-Limit-Remaining. A limit, or a count above 0,
// signs nothing, because many limiters label every response. Without a signature, the service may have
// recorded the refund, called another service, and passed on its 429. Two limits follow:
//
//   - A limiter without these headers leaves unknown what it refuses, until [WithRefusals] says that
//     nothing was recorded. Examples are limit_req of nginx and HAProxy with status 429, and
//     Flask-Limiter by default.
//   - A service that passes on a 429 with its Retry-After, or in the last request that its own limiter
//     allows, looks like a limiter.
//
// Any other 4xx may be passed on after the refund was recorded, too, and some frameworks answer 404 if
// the function that handles a request returns nothing. No client can see it: submit one refund of your
// own, as examples/tools/probe does with -write, and look whether it is recorded. At a service that does
// so, read "correct" as "find out", and give no token source that renews a token after a 401.
//
// # Retries
//
// Submit retries a refund only if it cannot have been recorded:
//
//   - up to twice if it was proven not sent, and after a 429 that a limiter signs
//   - once after 401 with another token, and if a proxy could not connect
//   - never after an unknown host name, a failed TLS handshake, a proxy that forbids the
//     connection, or a failure of the limiter or the token source
//   - never after an unknown outcome, unless [WithResubmit] says that the service removes
//     duplicates, which is not documented
//
// After a Retry-After with 429, 502, 503 or 504, every call of the client waits, about a minute at
// most. With another status, only a retry of the same call does. A call fails and reports the wait if
// it got one of more than 60 s. It also fails if it would have to wait for another one's beyond its
// deadline, and reports what is left of the minute. All calls share a retry budget, so that retries do
// not multiply the load of an outage: an error says if it is spent.
//
// # If a refund can come twice, or the process can be killed
//
// A client remembers nothing, and SubmitAll removes no duplicates. The module
// [github.com/carddata/carddata-go/refunds/outbox] sends each refund once, for callers who wait, for
// queues and for files, in PostgreSQL or SQLite.
//
// In another database, keep a row for each refund with [WithBeforeSend]. Its function runs when nothing
// but sending is left, and commits that the refund has begun. If it fails, the refund is not sent, so of
// two calls one begins. After the call, write its action to the row. What a killed process leaves begun
// may have been recorded, and is not sent again before you have found out: the Example has the statements.
//
// # Defaults
//
//   - Retries: 2 ([WithMaxRetries], [WithRetryWait])
//   - Attempt timeout: 35 s ([WithAttemptTimeout])
//   - Call timeout: 90 s for Submit, if the context has no deadline; none for SubmitAll, where the
//     attempt timeout bounds each request
//   - Connections: a new one for each attempt, opened ahead; connect 5 s, TLS handshake 5 s, HTTP/1.1,
//     TLS 1.2 and later, the environment's proxy, headers of 64 KiB at most, no redirects
//   - Everything else: see the options
//
// # Slow services, overload and outages
//
// A client adapts what it has in flight to what the service accepts, for Submit and SubmitAll
// together. Ten refunds are in flight at first. After the first successes, only the Concurrency of
// SubmitAll limits them, until something fails or responses take twice as long as at best. Use one
// client for a service, because clients do not know of each other. If you know of a limit, set
// [WithRateLimit].
//
// At a service that is only slow, a refund ends as with net/http, if its deadline is 2.5 times longer.
// At one that answers 503 beyond a limit, one refund in fifty is unknown as a rule. At one that queues,
// it is one in forty in the first two minutes and hardly any later, and one in three at worst. What is
// too much for a service is not sent. The README of internal/flow says what other failures cost.
//
// Three failures in a row are an outage, or two before the first success, or six if others are in
// flight, or one soon after an outage. The service then gets one request at a time as a probe: after
// about a second, and then after delays that about double, up to two minutes, which makes about 25
// probes in half an hour. The first one that succeeds ends the outage. Meanwhile SubmitAll waits, and
// Submit fails at once with [ErrSuspended] and the time to the next probe as RetryAfter. If a process
// starts in an outage, ten refunds become unknown at once if requests fail, and 40 if they get no
// response, before the first probe. A 403, 404 or 410 is about its account, and begins an outage only
// if no other account works.
//
// A refund that has waited in this process for more than a twentieth of a usual response time, and
// has less time left than a response usually takes, is not sent, with [ActionResubmit] and
// context.DeadlineExceeded. Outside an outage, a refund that need not wait is always sent. A
// deadline of yours that passes is no failure of the service, unless the response took much longer
// than usual, or nothing has succeeded for a while.
//
// # Deadlines and your own code
//
// A call ends by its deadline, and no refund begins to leave after it, even if the machine was
// suspended. Code of yours that gets a context, such as a token source, a limiter or a wrapper, ends
// with it, as everywhere in Go. A call also waits for a logger and the function of
// [WithReceiptCheck], and SubmitAll for its loop, input and functions. SubmitAll goes on for
// [BulkOptions.Grace] after the end of its context.
//
// # If a proxy stands before the service
//
// A proxy that repeats a POST by itself passes on only the last response. If the service
// recorded the first request and refused the second, "rejected" is wrong, and no client can
// see it. The common proxies do not repeat by default. For this route, do not set
//
//	proxy_next_upstream … non_idempotent;      # nginx
//	retry-on all-retryable-errors              # haproxy, nor any list beyond conn-failure
//
// If you cannot be sure, use Submit with [WithMaxRetries] 0, and treat each 4xx as an unknown
// outcome. SubmitAll sends a record again after a 429 that a limiter signs.
package refunds
