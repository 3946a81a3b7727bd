// Package refunds submits refund records (interface, endpoint 2). A refund is
// never silently lost and never silently sent twice.
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
//	case errors.Is(err, refunds.ErrNotSent):
//		// nothing was recorded: submit it again later
//	case errors.Is(err, refunds.ErrRejected):
//		// the service refused it: errors.As gives the *Error with its status
//	case errors.Is(err, refunds.ErrOutcomeUnknown):
//		// it may have been recorded: find out before submitting it again
//	}
//
// # Outcomes
//
// The outcome is decided by what is known of the connection, never by the text
// of an error.
//
// Accepted: a 2xx status, whatever its body, unless that is an HTML page.
//
// Not sent: the arguments, the limiter or the token source ended the call; or no
// connection was made; or it is counted that no byte was written to it.
//
// Rejected: a 4xx status other than 408, or 307, 308, 501 and 505.
//
// Unknown: anything else. A timeout, a connection that broke, a cancellation
// after the request left, 408, 500, 502, 503, 504, and 301 to 303 can all come
// from something between here and the service after the service has recorded
// the refund.
//
// # Retries
//
// Submit repeats up to twice what was proven not sent, and 429; once 421, 425,
// and 401 with another token. It never repeats an unknown outcome, unless
// [WithResubmit] says that the service removes duplicates, which its
// documentation does not.
//
// # Any number of refunds
//
// [Client.SubmitAll] takes a sequence of records of any length and yields what
// became of each, several requests at a time and in bounded memory. It pauses
// while the service fails, so that an outage leaves few outcomes unknown, and
// lets requests on the wire finish when it is stopped.
package refunds
