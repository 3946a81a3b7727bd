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
//			if r.StatusCode != 201 { // or what else shows that it was recorded
//				return errors.New("not recorded")
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
//		case refunds.ActionFixSetup: // it was not recorded, and others will fail alike: raise an alarm
//		default: // it may have been recorded: find out before you submit it again
//		}
//		fmt.Println(refunds.ActionOf(err), err)
//	}
//
// A client remembers nothing, and SubmitAll removes no duplicates. If a refund can come twice, or the process
// can be killed, use [github.com/carddata/carddata-go/refunds/outbox]: it sends each refund once, for callers
// who wait, for queues and for files.
//
// What you decide:
//
//   - What to do after each call: [Action].
//   - What the service sends for a refund that it has recorded: [WithReceiptCheck].
//   - Ask its operator: whether a status proves that nothing was recorded ([WithRefusals]), and whether it
//     removes duplicates ([WithResubmit]).
//
// Retries, load and outages, deadlines and defaults are chapters of [github.com/carddata/carddata-go].
//
// # The endpoint
//
//	POST {refund_url}/v1/{account_id}/refunds
//	Content-Type: application/json
//
// The body is one [Refund]. No credential is part of the request. Only the names and the JSON types of the
// fields are documented. Not documented: which fields are required, their formats and lengths, the unit of
// amount, the values of svc_refund_status but one, and the responses, with status codes, errors and limits.
//
// # Outcomes
//
// The connection and the status decide the outcome, and never the text of an error:
//
//   - Accepted: a 2xx, unless [WithReceiptCheck] refuses it, or its body is an HTML page, a problem of
//     RFC 9457, a JSON object whose "error" or "errors" says something, or broken JSON with either name.
//   - Not sent: the arguments, the limiter, the token source or an outage ended the call, or no byte was
//     written to a connection.
//   - Rejected: 501, 505, each 4xx that IANA registers except 406, 408, 416, 421, 424, 425 and 429, a
//     429 that a limiter signs, what [WithRefusals] names, and a 307 or 308 that has no Location or leads to
//     the same path. After a 409, an earlier submission may have been recorded.
//   - Unknown: everything else, such as a timeout, a broken connection, a 500 or 503, another redirect, and the
//     end of the context after the first byte. So is a response that began before the request, and a refund
//     that [WithResubmit] repeated after an unknown outcome.
//
// A limiter signs a 429 with a Retry-After, or with a remaining count of 0 in RateLimit, RateLimit-Remaining,
// X-RateLimit-Remaining or X-Rate-Limit-Remaining. An unsigned 429 may come from another service that the
// service called after it recorded the refund. Limits of this rule:
//
//   - Some limiters sign nothing, such as limit_req of nginx, HAProxy, and Flask-Limiter by default. What they
//     refuse is unknown, until [WithRefusals] says that nothing was recorded.
//   - A service that passes on a signed 429 of another one looks like a limiter.
//
// A service may also pass on another 4xx after it recorded the refund, and some frameworks answer 404 if a
// function returns nothing. No client can see that: submit one refund of your own with
// examples/tools/probe -write, and look whether it is recorded. If it is, treat ActionCorrect as
// ActionFindOut, and use no token source that renews a token after a 401, because the refund is sent again then.
//
// # If a proxy stands before the service
//
// A proxy that repeats a POST passes on only the last response. If the service recorded the first request
// and refused the second, "rejected" is wrong. The common proxies do not repeat by default. Do not set
//
//	proxy_next_upstream … non_idempotent;      # nginx
//	retry-on all-retryable-errors              # haproxy, nor any list beyond conn-failure
//
// If you cannot be sure, use [WithMaxRetries] 0 with Submit, and read each 4xx as unknown.
package refunds
