// Package refunds submits refund records. A refund is never silently lost and never silently
// sent twice.
//
//	package main
//
//	import (
//		"context"
//		"errors"
//		"fmt"
//
//		"github.com/carddata/carddata-go/refunds"
//	)
//
//	func main() {
//		check := refunds.WithReceiptCheck(func(r *refunds.Receipt) error {
//			if r.StatusCode != 201 { // or what your service sends for a refund that it has recorded
//				return errors.New("the service does not say that it recorded the refund")
//			}
//			return nil
//		})
//		client, err := refunds.NewClient("https://refund.example.com", check)
//		if err == nil {
//			refund := &refunds.Refund{RefundID: "rf_1001", Amount: new(int64(10150)), Currency: "USD"}
//			_, err = client.Submit(context.Background(), "acct_1", refund)
//		}
//		switch refunds.ActionOf(err) {
//		case refunds.ActionDone: // it was accepted
//		case refunds.ActionResubmit: // it was not recorded: submit it again later
//		case refunds.ActionCorrect: // it was not recorded: correct the record
//		case refunds.ActionFixSetup: // it was not recorded, and others will fail like it: raise an alarm
//		default: // it may have been recorded: find out before you submit it again
//		}
//		fmt.Println(refunds.ActionOf(err), err)
//	}
//
// If a refund can come twice, or the process can be killed, use
// [github.com/carddata/carddata-go/refunds/outbox]: it sends each refund once, for callers who wait, for
// queues and for files. A client remembers nothing, and SubmitAll removes no duplicates.
//
// What you decide:
//
//   - [Client.Submit] or, for many refunds, [Client.SubmitAll].
//   - What to do after each call: [Action] has the failures that lead to each action.
//   - What your service sends for a refund that it has recorded: [WithReceiptCheck].
//   - Whether a status proves that nothing was recorded ([WithRefusals]), and whether the service removes
//     duplicates ([WithResubmit]). Ask its operator.
//
// Retries, Retry-After, load and outages, deadlines and defaults are chapters of
// [github.com/carddata/carddata-go], the page of all three packages.
//
// # The endpoint
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
// The connection and the status decide the outcome, and never the text of an error:
//
//   - Accepted: a 2xx status, unless its body is an HTML page, a JSON object whose "error" or "errors" says
//     something, broken JSON with either name, or a problem of RFC 9457, or [WithReceiptCheck] refuses it.
//   - Not sent: the arguments, the limiter, the token source or an outage ended the call, or no byte was
//     written to a connection.
//   - Rejected: 501, 505, each 4xx that IANA registers except 406, 408, 416, 421, 424, 425 and 429, a
//     429 that a limiter signs, what [WithRefusals] names, and a 307 or 308 that has no Location or leads to
//     the same path. After a 409, an earlier submission may have been recorded.
//   - Unknown: everything else, such as a timeout, a broken connection, a 500 or 503, another redirect, or the
//     end of the context after the first byte. So is a response that began before the request, and a refund
//     that [WithResubmit] repeated after an unknown outcome.
//
// A limiter signs a 429 with a Retry-After, or with a remaining count of 0 in RateLimit,
// RateLimit-Remaining, X-RateLimit-Remaining or X-Rate-Limit-Remaining. Without a signature, the service may
// have recorded the refund, called another service, and passed on its 429. Two limits follow:
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
