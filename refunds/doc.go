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
// Three decisions are yours:
//
//   - After each call, do what [ActionOf] says. The comments of [Action] list the failures that
//     lead to each action. If you use [WithBeforeSend], test for its error first.
//   - For many refunds, use [Client.SubmitAll]. It takes records of any number of accounts, and
//     yields the result of each in bounded memory.
//   - If a refund can come twice, or the process can be killed, keep a row of what was begun: see
//     below. The module refunds/outbox does this for you in PostgreSQL or SQLite.
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
//   - Accepted: a 2xx status. The exceptions are an HTML page, a JSON object with a non-empty
//     "error" or "errors", broken JSON with either name, a problem of RFC 9457, and a receipt that
//     [WithReceiptCheck] refuses.
//   - Not sent: the arguments, the limiter or the token source ended the call, or no byte was
//     written to a connection.
//   - Rejected: 501, 505, each 4xx that IANA registers except 408, and a 307 or 308 that leads to the
//     same path, such as on another host. After a 409, an earlier submission may have been recorded.
//   - Unknown: everything else, such as a timeout, a broken connection, a 499, or a cancellation
//     after the first byte. A proxy may send 408, 500, 502, 503 or 504, and a service a redirect to
//     another path, although the refund was recorded. The outcome is also unknown if the response
//     began before the request, or if [WithResubmit] repeated an attempt with an unknown outcome.
//
// Some frameworks answer 404 if the function that handles a request returns nothing. If a service
// records refunds and answers so, "rejected" is wrong, and no client can see it. Check it once with a
// refund of your account.
//
// # Retries
//
// Submit retries a refund only if it cannot have been recorded:
//
//   - up to twice if it was proven not sent, and after 429
//   - once after 421, 425, and 401 with another token, and if a proxy could not connect
//   - never after an unknown host name, a failed TLS handshake, a proxy that forbids the
//     connection, or a failure of the limiter or the token source
//   - never after an unknown outcome, unless [WithResubmit] says that the service removes
//     duplicates, which is not documented
//
// After a Retry-After with 429, 502, 503 or 504, every call of the client waits, up to 60 s. With
// another status, only a retry of the same call does. A call that would have to wait longer, or
// beyond its deadline, fails and reports the wait. All calls share a retry budget, so that retries
// do not multiply the load of an outage: an error says if it is spent.
//
// # If a refund can come twice, or the process can be killed
//
// This is for handlers whose callers repeat requests, for queue workers, and for jobs over a file
// or a table. A client remembers nothing, and SubmitAll removes no duplicates. Keep a row for each
// refund in a database. Its unique key is the account and the RefundID, and a number of your own if
// a later status goes under the same RefundID. Never delete a row to begin again: another call could
// begin in between.
//
//   - Read the row first. Submit the refund if there is no row, or one with [ActionResubmit].
//     Otherwise answer from the row, and never ask the caller for a new RefundID. A repeat with
//     another record is no repeat: compare it with the row's.
//   - The function of [WithBeforeSend] writes "begun", the time, the record and the id of this call,
//     and commits. Make a new random id for each Submit, and for each item of SubmitAll. The id of a
//     job or of a message is no such id. If no row has changed, another call has begun, or your job
//     has given this one up, and the function returns an error. A retry finds the id of its own
//     call, and renews the time.
//   - After the call, change its own "begun" to the action.
//   - After [ActionFindOut], change the row of this call to [ActionDone] or [ActionResubmit], once
//     you have found out. Once the setup or the record is corrected, change [ActionFixSetup] or
//     [ActionCorrect] to ActionResubmit. For a row with ActionResubmit, perhaps nobody comes again:
//     let a job of yours submit its record, or put its message back.
//
// In PostgreSQL, where a state is "begun" or the text of an action, and $1 and $2 of the first two
// statements are the account and the RefundID:
//
//	CREATE TABLE refund (account text, id text, record jsonb NOT NULL, state text NOT NULL,
//		call text NOT NULL, at timestamptz NOT NULL, PRIMARY KEY (account, id))
//
//	-- Begin: $3 is the id of this call, $4 the state that was read, or NULL without a row, and $5
//	-- the record.
//	INSERT INTO refund (account, id, record, state, call, at) VALUES ($1, $2, $5, 'begun', $3, now())
//	ON CONFLICT (account, id) DO UPDATE SET record = $5, state = 'begun', call = $3, at = now()
//	WHERE refund.state = $4 OR refund.state = 'begun' AND refund.call = $3
//
//	-- Change the state of the call $3 from $4 to $5.
//	UPDATE refund SET state = $5
//	WHERE account = $1 AND id = $2 AND call = $3 AND state = $4
//
//	-- Give up what can no longer be in flight: $1 is how long a row can be so.
//	UPDATE refund SET state = 'find out'
//	WHERE state = 'begun' AND at < now() - $1::interval
//
// The second statement compares the call, because another call may have begun and ended in the same
// state since the row was read.
//
// A row that is "begun" can be in flight for this long after its time, by the clock of the database.
// Then the outcome is unknown. Perhaps no message or caller comes again, so a job of yours runs the
// third statement every minute.
//
//   - Submit: the timeout of the call, and the time that you need to write the action.
//   - SubmitAll: [BulkOptions.HoldFor], because a retry can wait for so long, the attempt timeout,
//     and the time that you need to write twice Concurrency results, or a thousand if Ordered. If
//     HoldFor is no limit, until SubmitAll has ended.
//   - One job under a lock: each row that is "begun" at the start is unknown at once.
//
// If the change from "begun" changes no row although the function had written it, your job has given
// this call up. If the refund was accepted, change "find out" or "resubmit" of this call to "done". If
// neither changes a row, and the row of this call is not "done" either, another call has begun: raise
// an alarm. If the refund was not accepted, leave the row as it is.
//
// A queue has to hide a message for twice HoldFor, the attempt timeout and the time that you need
// to write: with ReadAhead 4 minutes and 35 seconds, and that time. A record can be begun HoldFor
// after it was yielded, and its row can then be in flight for as long as said above. Receive each
// message just before you yield it, because in a pause yield can wait for the next probe. Delete
// the message once its row is "done". Let it come again after [ActionResubmit], and if another call
// has begun. Set it aside after any other action. If your database fails, SubmitAll does not pause,
// and each record comes back at once: let the function retry until its context ends, which is after
// HoldFor, or else after a timeout of your own.
//
// After [ActionFixSetup], stop: the other records would fail too. But if the account has worked, up
// to seven 403, 404 or 410 in a row are about single refunds. With several accounts, they are about
// one account, and so is 401 if each has its own credential. Set those messages aside, and stop if
// Progress reports Paused with the Reason "not_found", "forbidden" or "unauthorized". If the outcome
// is "not sent", as for an unknown host, let the message come again, with ActionResubmit in its row.
//
// Neither a shutdown nor a caller who leaves may cancel Submit, or the write of an action: give them
// a context of their own, such as context.WithoutCancel with a timeout.
//
// # Defaults
//
//   - Retries: 2 ([WithMaxRetries], [WithRetryWait])
//   - Attempt timeout: 35 s ([WithAttemptTimeout])
//   - Call timeout: 90 s, if the context has no deadline. In SubmitAll it bounds the request of a
//     record, and not the waits before it.
//   - Connections: each attempt opens a new one; connect 5 s, TLS handshake 5 s, HTTP/1.1, TLS 1.2
//     and later, the environment's proxy, headers of 64 KiB at most, no redirects
//   - Everything else: see the options
//
// # Slow services, overload and outages
//
// A client adapts what it has in flight to what the service accepts, for Submit and SubmitAll
// together. Use one client for a service, because clients do not know of each other. If you know
// of a limit, set [WithRateLimit].
//
//   - A slow service gets as many requests as a fast one. Ten are in flight at first. After the
//     first successes, only the Concurrency of SubmitAll limits them.
//   - If the service has a limit, fewer are in flight. About one refund in a hundred is unknown, or
//     one in thirteen at sixty a minute, and one in five at a dozen.
//   - If the service queues requests, and responses take twice as long as at best, fewer are in
//     flight. At most six refunds in a hundred are unknown, or one in five if it works on one at a
//     time or has just started, and in SubmitAll up to Concurrency once. A service that answers only
//     a part of the requests late gets as many as before.
//   - If the service stops for a few seconds, that costs the refunds of these seconds, and about as
//     many after them.
//   - If the service becomes many times slower at once, that looks like a queue for about fifteen
//     of its new response times. Refunds that have no time to wait are not sent then.
//   - If one request in a hundred fails at random, no other refund is affected as a rule, unless it
//     has to wait. If up to one in ten fail, about one refund in twenty is not sent, and at worst
//     one in four, while the client finds out that its load is not the reason. From one in five on,
//     most refunds are not sent, and some for up to two minutes after the failures have ended.
//   - Three failures in a row are an outage, or two before the first success, or six if others are
//     in flight. The service then gets one request at a time as a probe: after about a second, and
//     then after delays that about double, up to two minutes. The first probe that succeeds ends
//     it. Meanwhile SubmitAll waits, and Submit fails at once with [ErrSuspended] and the time to
//     the next probe as RetryAfter. What was in flight at the beginning is unknown, and one
//     refund for each probe, about 25 in half an hour. A process that starts in an outage adds ten
//     if requests fail, and 42 in half a minute if they get no response.
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
// suspended. If code of yours does not end with its context, such as a limiter, a wrapper or a
// function of a tls.Config, the call ends a tenth of a second after the deadline, and leaves one
// goroutine that waits for that code. A logger and the function of [WithReceiptCheck] run on the
// call's goroutine and can delay it.
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
// outcome. SubmitAll sends a record again after a 421, 425 or 429.
//
// # Wrappers
//
// This is for those who use [WithTransport]. A wrapper may change URL, header and body. Its base
// sends the refund at most once in an attempt, and not after the wrapper has returned.
//
//   - A request that is built anew must keep the context or the Cancel channel of the
//     original, or base refuses it.
//   - If base was not called, the attempt counts as not sent. So a wrapper that sends through
//     another transport, such as http.DefaultTransport, can repeat a refund.
//   - base sends the wrapper's own requests only without a body or with a form, as for a
//     token.
//   - A 2xx that the wrapper makes up counts as accepted.
//
// # Your own http.Client
//
// This is for those who use [WithHTTPClient]. Such a client loses the proof of "not sent", unless
// its Transport is an *http.Transport that made no connection. It may send a refund twice, keeps
// connections that the service may close, and has its own limits for TLS, header and connecting.
package refunds
