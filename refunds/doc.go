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
//	case refunds.ActionFixSetup: // not recorded; stop, and correct the setup
//	default: // it may have been recorded: find out before you submit it again
//	}
//
// It covers one endpoint of the service:
//
//	POST {refund_url}/v1/{account_id}/refunds
//	Content-Type: application/json
//
// The body is one [Refund]. No credential is part of the request. The service documents the
// name and the JSON type of each field. It does not document which fields are required, their
// formats and lengths, the unit of amount, the values of svc_refund_status but one, or
// anything about the response: status codes, bodies, errors and limits.
//
// # Outcomes and actions
//
// The connection and the status decide the outcome, never the text of an error:
//
//   - Accepted: a 2xx status, unless the body is an HTML page, a JSON object with a non-empty
//     "error" or broken JSON with an "error", or [WithReceiptCheck] refuses the receipt.
//   - Not sent: the arguments, the limiter or the token source ended the call, or no byte was
//     written to a connection.
//   - Rejected: a 4xx status other than 408, or 307, 308, 501 and 505. After a 409, an earlier
//     submission may have been recorded.
//   - Unknown: everything else, such as a timeout, a broken connection, or a cancellation
//     after the first byte. A proxy may send 408, 500, 502, 503, 504, or 301 to 303 although
//     the service has recorded the refund. Under any status, the outcome is also unknown if
//     the response began before the request, or if [WithResubmit] repeated an attempt with an
//     unknown outcome.
//
// [ActionOf] turns the error of Submit into what to do, and [Submission.Action] the result of
// SubmitAll. The comments of [Action] list the failures that lead to each action.
//
// # Any number of refunds
//
// [Client.SubmitAll] takes records of any number of accounts and yields the result of each, in
// bounded memory:
//
//	for s, err := range client.SubmitAll(ctx, items, refunds.BulkOptions{}) {
//		if err != nil {
//			return err // the submission has ended early
//		}
//		save(s.AccountID, s.RefundID, s.Action(), s.Err)
//	}
//
// To stop, cancel ctx and keep taking results: requests in flight may finish.
//
// # From a queue or a table
//
// A client remembers nothing, and SubmitAll removes no duplicates. Keep a durable mark for
// each record, so that after a kill you know what was begun:
//
//   - [WithBeforeSend] writes the mark, in one step that fails if another process wrote it: an
//     INSERT with a unique key. The key is account and RefundID, and a number of your own if a
//     later status goes under the same RefundID. To submit a record again, use an UPDATE that
//     replaces the action that you read with the mark. Never delete the row first: another
//     process could begin in between.
//   - After the call, replace the mark that this call wrote with the action. A call can fail
//     before it writes one, as in a pause. What the table holds then is another call's: leave
//     it, also where the action is ActionResubmit, which is about this call alone.
//
// A record with a mark may still be in flight, because queues deliver some messages twice.
// Leave it alone until the mark is older than the call's timeout (in SubmitAll, the attempt
// timeout) and the time that you take to write the action. Then its process has ended, and
// the outcome is unknown. With one job under a lock, a mark that is found at the start is
// unknown at once. Let the queue hide a message for that time, and in SubmitAll for
// [BulkOptions.HoldFor] more. Delete a message if its record is done with; otherwise, as when
// another call's mark refuses it, let it come again. Read the table before the call, too:
// WithBeforeSend comes after all waits.
//
// Do not let a shutdown cancel a call of Submit: give it a context of its own, such as
// context.WithoutCancel with a timeout. After [ActionFixSetup], leave the other records in the
// queue: they would fail too. With several accounts, 403, 404 and 410 are about one account,
// and so is 401 if each has its own credential: set aside the records of that account alone.
//
// # Defaults
//
//   - Retries: 2 ([WithMaxRetries])
//   - Retry wait: random, at most 200 ms·2ⁿ after n retries, or 1 s·2ⁿ after a 429 without
//     Retry-After, and never more than 5 s ([WithRetryWait])
//   - Attempt timeout: 35 s ([WithAttemptTimeout])
//   - Call timeout: 90 s, if the context has no deadline; in SubmitAll it bounds the request
//     of a record, but not the waits before it
//   - Response: the first 64 KiB are kept ([WithMaxResponseBytes])
//   - Redirects: none are followed
//   - Idle connections: at most 1.5 s
//   - Connections: connect 5 s, TLS handshake 5 s, HTTP/1.1, TLS 1.2 and later, the
//     environment's proxy, headers of 64 KiB at most ([WithTransport], [WithTLSConfig],
//     [WithProxy])
//   - Rate limit: none ([WithRateLimit], [WithLimiter])
//   - Credential: none ([WithTokenSource], [WithHeader])
//   - Logs: none ([WithLogger])
//
// # Retries
//
// Submit retries a refund only if it cannot have been recorded:
//
//   - up to twice if it was proven not sent, and after 429
//   - once after 421, 425, and 401 with another token, and if a proxy could not connect
//   - never after an unknown host name, a failed TLS handshake, such as with an untrusted
//     certificate, a proxy that forbids the connection, or a failure of the limiter or the
//     token source
//   - never after an unknown outcome, unless [WithResubmit] says that the service removes
//     duplicates, which is not documented
//
// If the service sends a Retry-After with 429, 502, 503 or 504, every call of the client waits
// for it, up to 60 s. With another status, only a retry of the same call does. A call that would
// have to wait longer, or beyond its deadline, fails and reports the wait.
//
// All calls of a client share one retry budget of 500 points. A retry costs 5 points,
// and nothing if it succeeds. A call that gets an answer without a retry earns 1. Without
// points nothing is retried, and the error says so.
//
// # Overload and outages
//
// A client adapts what it has in flight to what the service accepts, for Submit and SubmitAll
// together. A slow service is not slowed down further: ten requests are in flight at first, and
// the first successes let all that wait go. If requests fail, or take twice as long as they do at
// best, fewer are in flight. A call that has waited, for its place, a limiter, a pause or a token,
// and has less time left than a response usually takes, is not sent, with [ActionResubmit] and
// context.DeadlineExceeded. A call that need not wait is always sent. The end of a caller's context
// says nothing of the service, unless the response took much longer than usual.
//
// A service with a limit leaves about one refund in a hundred unknown, or up to one in five if it
// counts a dozen by the minute. One that queues what is too much leaves at most six in a hundred.
// internal/flow has the figures.
//
// If you know of a limit, set [WithRateLimit]. Use one client for a service, because clients
// and processes do not know of each other. If the service is merely busy, Submit waits for a
// place until its context ends.
//
// A service that is down gets one request at a time as a probe: after a second, then after
// delays that double up to two minutes, each shortened by up to half at random. The probes of
// an outage soon after another one begin with longer delays. So an outage leaves unknown what
// was in flight when it began, and one refund for each probe, about 25 in half an hour. A
// process that starts in an outage adds ten at once if requests fail, and 40 if they hang, and
// begins the probes anew. Meanwhile SubmitAll waits, and Submit fails at
// once with [ErrSuspended] and the time to the next probe as RetryAfter. After repeated
// outages, it can take five minutes until the client is at full speed again. It can take 35
// minutes if the service goes on failing a share of requests at random, or if the outages were
// bans.
//
// If a service fails a share of requests at random, slowing down does not help. Up to about a
// tenth, that share is unknown. From about three tenths on, it counts as an outage: SubmitAll
// gives up, and 30 to 150 outcomes are unknown, in rare cases 800. In between either may
// happen.
//
// # Deadlines and your own code
//
// Every call ends by its deadline, and no refund begins to leave after it, even if the machine
// was suspended. If code of yours does not end with its context, such as a limiter, a wrapper,
// a transport, a response body, a proxy function or a function of a tls.Config, the call ends
// a tenth of a second later, and leaves one goroutine that waits for that code. A logger and
// the function of [WithReceiptCheck] run on the call's goroutine and can hold it.
//
// # Connections
//
// Each refund uses a connection of its own, because a kept one can deliver the response to
// another request. While refunds follow each other, the next connection is dialled during a
// refund, so that a refund takes one round trip. At most three connections wait for each
// refund in flight, up to 1.5 seconds. Then the client holds none, and there is nothing to
// close. If the service closes an unused connection within that time, a refund may end as
// unknown. Each refund of the next minute then waits for a new connection.
//
// # Proxies that repeat a request
//
// A proxy that repeats a POST by itself passes on only the last response. If the service
// recorded the first request and refused the second, "rejected" is wrong, and no client can
// see it. The common proxies do not repeat by default. For this route, do not set
//
//	proxy_next_upstream … non_idempotent;      # nginx
//	retry-on all-retryable-errors              # haproxy, nor any list beyond conn-failure
//
// If you cannot be sure, set [WithMaxRetries] to 0, and treat a rejection as an unknown outcome.
//
// # Wrappers
//
// A wrapper of [WithTransport] may change URL, header and body. Its base sends the refund at
// most once in an attempt, and not after the wrapper has returned.
//
//   - A request that is built anew must keep the context or the Cancel channel of the
//     original, or base refuses it.
//   - If base was not called, the attempt counts as not sent. So a wrapper that sends through
//     another transport, such as http.DefaultTransport, can repeat a refund.
//   - base sends the wrapper's own requests only without a body or with a form, as for a
//     token.
//   - A 2xx that the wrapper makes up counts as accepted.
//
// What an [http.Client] of your own loses:
//
//	                       the library's transport      WithHTTPClient(c)
//	proof of "not sent"    by the bytes written         if c's Transport is an *http.Transport
//	                                                    that made no connection, else none
//	second send            never within one attempt     up to c
//	connections            one each, dialled ahead      kept: one that the service closes
//	                                                    leaves an outcome unknown
//	TLS                    1.2 and later                up to c
//	response header        up to 64 KiB                 up to c (net/http: 10 MiB)
//	connect, handshake     5 seconds each               up to c (net/http: none)
//
// # Examples
//
// pkg.go.dev shows them, and they are in the files *example_test.go: ActionOf, Client.Submit,
// Client.SubmitAll (Resume: after a kill), BulkOptions (ReadAhead: from a queue; Stop),
// WithBeforeSend, WithReceiptCheck and WithResubmit.
package refunds
