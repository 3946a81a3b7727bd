// Package refunds submits refund records. A refund is never silently lost and never
// silently sent twice.
//
//	client, err := refunds.NewClient("https://refund.example.com")
//	…
//	receipt, err := client.Submit(ctx, accountID, &refunds.Refund{
//		RefundID: "rf_1001",
//		Amount:   new(int64(10150)),
//		Currency: "USD",
//	})
//	switch {
//	case err == nil:
//		// accepted; keep receipt.RequestID
//	case errors.Is(err, refunds.ErrOutcomeUnknown), errors.Is(err, refunds.ErrConflict):
//		// it may have been recorded: find out before you submit it again
//	default:
//		// not recorded: see Actions below
//	}
//
// # Service description
//
// The service description is the document in which the service describes itself. You can
// work without it: what it says is repeated here, and what it leaves open is called "not
// documented".
//
// The package covers one endpoint:
//
//	POST {refund_url}/v1/{account_id}/refunds
//	Content-Type: application/json
//
// The body is one [Refund]. No credential is part of the request. The service description
// has the fields of the body and their types. It does not document which fields are
// required, the formats of created and currency, the unit of amount, or the values
// of svc_refund_status. Of the response it documents nothing: neither status codes nor
// bodies, errors or limits. Where this package has to assume something, the comment says
// so.
//
// # Outcomes
//
// The connection and the status decide the outcome, never the text of an error.
//
// Accepted: a 2xx status, unless the body is an HTML page or the documented error object,
// or [WithReceiptCheck] refuses the receipt.
//
// Not sent: the arguments, the limiter or the token source ended the call; or no
// connection was made; or no byte was written to the connection (the client counts
// them).
//
// Rejected: a 4xx status other than 408, or 307, 308, 501 and 505. The service has not
// recorded what it refuses, but a 409 may be about an earlier submission that it has
// recorded. With [WithResubmit], a refusal after an attempt whose outcome is unknown is
// unknown as well.
//
// Unknown: everything else. The service may have recorded the refund before a timeout,
// a broken connection, or a cancellation after the request was sent. A proxy may send
// 408, 500, 502, 503, 504, or 301 to 303 after the service has recorded it.
//
// # Actions
//
// The first line of an outcome that applies says what to do. Retryable is
// [Error.Retryable].
//
//	accepted                                  keep the receipt
//
//	unknown                                   find out before you submit it again
//
//	rejected   ErrConflict (409)              as unknown: an earlier submission may have
//	                                          been recorded
//	           Retryable (421, 425, 429; 401  submit it again later, after a 429 when
//	           if the token source failed)    RetryAfter has passed
//	           ErrUnauthorized (401),         stop; correct the credential, account id,
//	           ErrForbidden (403, 407),       base URL or proxy; submit the same record
//	           ErrNotFound (404, 410),        again
//	           ErrRedirect (307, 308),
//	           ErrServer (501, 505)
//	           any other (4xx)                correct the record
//
//	not sent   ErrInvalidArgument             correct the record or the option
//	           ErrSuspended                   see to the failures before it; submit it
//	                                          again in another call
//	           Retryable                      submit it again later
//	           any other (unknown host,       stop; correct host name, certificate or
//	           certificate, proxy)            proxy; submit the same record again
//
// # Defaults
//
//   - Retries: 2 ([WithMaxRetries])
//   - Retry wait: random, at most 200 ms·2ⁿ after n retries, or 1 s·2ⁿ after a 429
//     without Retry-After, and never more than 5 s ([WithRetryWait])
//   - Retry-After: every call of the client waits for it, up to 60 s. A call that is asked
//     to wait longer, or beyond its deadline, fails and reports the wait
//   - Retry budget: a client starts with 500 points, the most it can have. A retry costs 5
//     points, 10 after an attempt timeout, none after a 401 with a new token. If it helps,
//     it costs nothing. A call without a retry that ends with a success, a 202 or a 4xx
//     earns 1; time earns nothing. Without enough points nothing is retried, and the error
//     says so
//   - Attempt timeout: 35 s ([WithAttemptTimeout])
//   - Call timeout: 90 s, if the context has no deadline; a record of SubmitAll has none
//   - Response: the first 64 KiB are kept ([WithMaxResponseBytes])
//   - Redirects: none are followed
//   - Idle connections: none, each attempt has its own ([WithConnectionReuse])
//   - Connections: connect 5 s, TLS handshake 5 s, HTTP/1.1, TLS 1.2 and later, the
//     environment's proxy, headers of 64 KiB at most ([WithTransport], [WithTLSConfig],
//     [WithProxy])
//   - Rate limit: none ([WithRateLimit], [WithAdaptiveRate], [WithLimiter])
//   - Logs: none ([WithLogger])
//
// Further options: [WithTokenSource] (with [CachedToken] or [TokenFunc]) and
// [WithHeader] add a credential or another header to each request, [WithUserAgent]
// names your product, [WithInsecureHTTP] allows http beyond loopback, and
// [WithHTTPClient] takes a fake.
//
// # From a queue or a table
//
// A client remembers nothing. Before every call, mark the record as begun, durably, in one
// step that fails if another process does the same: an INSERT with a unique key, or, to
// submit again what was not sent or rejected, an UPDATE that replaces the outcome that you
// read. If it changes nothing, leave the record alone. The key is account and RefundID;
// add a number of your own if a later status goes under the same RefundID. After the call,
// replace the mark with the outcome.
//
// Save the time with the mark. A record that is found begun may still be in its call,
// because queues deliver some messages twice: leave record and message alone until the
// mark is older than the call's timeout. Then the outcome is unknown: the process ended
// during the call, or could not save. Delete a message only if its record is accepted,
// unknown, or waits for a correction; one that is to be submitted again stays in the
// queue. Let the queue hide a message for longer than the call's timeout (the
// visibility timeout of SQS), and let one job at a time work a table.
//
// A record of SubmitAll has no such timeout: it can wait for the limiter, for a
// Retry-After, or, with ReadAhead, in the input's yield. So over a queue, renew the
// time of the mark, and the message's visibility, until the record's result is yielded,
// for example every 30 seconds. If a mark was replaced before its outcome came, save
// the outcome beside it, and tell whoever decides about the record.
//
// Do not let a shutdown cancel a call: give it a context of its own, such as
// [context.WithoutCancel] with a timeout.
//
// Where Actions says stop, other records would fail too: leave them in the queue. With
// several accounts, 403, 404 and 410 stop only their account, and so does 401 if each
// account has its own credential: set its records aside and go on with the others.
//
// Submit has no circuit breaker, so each message taken in an outage can end as unknown.
// After a few failures in a row, wait before the next message, and try one at a time.
// [Client.SubmitAll] does that. The program examples/outbox does all this.
//
// # Retries
//
// Submit retries up to twice if the refund was proven not sent, and after 429; once
// after 421, 425, and 401 with another token, and if a proxy could not connect. It does
// not retry after an unknown host name, a failed TLS handshake, such as with an
// untrusted certificate, a proxy that forbids the connection, or a failure of the
// limiter or the token source. It never retries an unknown outcome, unless
// [WithResubmit] says that the service removes duplicates, which is not documented.
//
// # Proxies that repeat a request
//
// A proxy that repeats a POST by itself sends a refund several times and passes on only
// the last response. If the service recorded the first request and refused the second,
// "rejected" is wrong, and each retry after a 429 is multiplied. No client can see this.
// The outcomes are right only if nothing between client and service repeats a POST,
// which is the default of the common proxies. Do not set
//
//	proxy_next_upstream … non_idempotent;      # nginx
//	retry-on all-retryable-errors              # haproxy, nor any list beyond conn-failure
//
// for this route. If you cannot be sure, set [WithMaxRetries](0), so that the client adds
// no retries, and treat a rejection as an unknown outcome.
//
// # Connections
//
// Each refund uses a new connection. A reused one can deliver a response that belongs
// to another request, or the other side can close it while the refund is being written.
// [WithConnectionReuse] trades that safety for speed; its comment has the figures.
//
// # Errors
//
// Every failed submission is an [*OutcomeError], which matches [ErrNotSent],
// [ErrRejected] or [ErrOutcomeUnknown]. It wraps an [*Error]. errors.Is tells its
// conditions apart too:
//
//   - on your side: [ErrInvalidArgument], [ErrCredential], [ErrLocalLimit]
//   - no response: [ErrNoResponse], [ErrTimeout]
//   - a status: [ErrBadRequest], [ErrUnauthorized], [ErrForbidden], [ErrNotFound],
//     [ErrConflict], [ErrTooLarge], [ErrRateLimited], [ErrServer], [ErrRedirect]
//   - an unusable response: [ErrBadResponse], [ErrResponseTooLarge]
//   - one record of many: [ErrSuspended]
//
// [Error.Condition] names the condition, for metrics. [Error.Body] and [Error.Header]
// return what the service sent, which is never printed.
//
// # Any number of refunds
//
// [Client.SubmitAll] takes records of any number of accounts and yields the result
// of each, with several requests in flight and in bounded memory:
//
//	for s, err := range client.SubmitAll(ctx, items, refunds.BulkOptions{}) {
//		if s.Index < 0 {
//			return err // the submission has ended early
//		}
//		save(s.AccountID, s.RefundID, s.Outcome, err) // and act on it: see Actions
//	}
//
// SubmitAll removes no duplicates. The input marks each record as begun before it yields
// it, and the loop saves the outcome: see From a queue or a table. After a kill, the
// outcomes of the requests in flight are unknown.
//
// A circuit breaker pauses submission while the service fails, so that an outage leaves
// few outcomes unknown. To stop, cancel ctx and keep taking results: requests in flight
// may finish.
package refunds
