package refunds_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jarcoal/httpmock"

	"github.com/carddata/carddata-go/refunds"
)

// What to do after a submission is one value. A 2xx accepts a refund, also if its body says
// {"success": false}: a check of yours looks for that once you know what the service sends.
func ExampleClient_Submit() {
	service := httpmock.NewMockTransport() // stands in for the service
	service.RegisterResponder("POST", "https://refund.example.com/v1/acct_1/refunds",
		httpmock.NewStringResponder(201, `{"success":true}`).HeaderSet(http.Header{"X-Request-Id": {"req-7"}}))

	client, err := refunds.NewClient("https://refund.example.com",
		refunds.WithHTTPClient(&http.Client{Transport: service}), // without this line: over the network
		refunds.WithReceiptCheck(func(r *refunds.Receipt) error {
			var body struct{ Success bool }
			if json.Unmarshal(r.Body, &body) != nil || !body.Success {
				return errors.New("the service does not say that it accepted the refund")
			}
			return nil
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	receipt, err := client.Submit(context.Background(), "acct_1", &refunds.Refund{
		RefundID:      "rf_1001",
		Amount:        new(int64(10150)), // in minor units, as far as others do it: 101.50
		Currency:      "USD",
		TransactionID: "tx_2001",
		RefundResponse: refunds.RefundResponse{
			Status:                "approved",
			ProcessorResponseCode: "00",
		},
	})
	switch refunds.ActionOf(err) {
	case refunds.ActionDone:
		fmt.Println("accepted:", receipt.StatusCode, receipt.RequestID)
	case refunds.ActionResubmit:
		fmt.Println("not recorded, submit it again later:", err)
	case refunds.ActionCorrect:
		fmt.Println("not recorded, correct the record:", err)
	case refunds.ActionFixSetup:
		fmt.Println("not recorded, correct the setup first:", err)
	default: // ActionFindOut
		fmt.Println("perhaps recorded, find out first:", err)
	}
	// Output:
	// accepted: 201 req-7
}

// A worker decides what to do with a refund, and counts why under a name for its metrics. After
// an unknown outcome, the error holds what helps the service's operator to find out.
func ExampleActionOf() {
	service := httpmock.NewMockTransport() // stands in for the service
	statuses := []int{201, 429, 422, 403, 409, 504}
	signature := map[int]http.Header{429: {"Ratelimit-Remaining": {"0"}}} // of a limiter
	for _, status := range statuses {
		service.RegisterResponder("POST", fmt.Sprintf("https://refund.example.com/v1/acct_%d/refunds", status),
			httpmock.NewStringResponder(status, "").HeaderSet(http.Header{"X-Request-Id": {fmt.Sprint("req-", status)}}).HeaderAdd(signature[status]))
	}
	client, err := refunds.NewClient("https://refund.example.com",
		refunds.WithHTTPClient(&http.Client{Transport: service}), refunds.WithMaxRetries(0))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, status := range statuses {
		_, err := client.Submit(context.Background(), fmt.Sprint("acct_", status), &refunds.Refund{RefundID: "rf_1005"})
		failed, ok := errors.AsType[*refunds.Error](err)
		if !ok {
			fmt.Println("ok -", refunds.ActionOf(err))
			continue
		}
		fmt.Println(failed.Condition(), "-", refunds.ActionOf(err))
		if failed.Outcome == refunds.OutcomeUnknown {
			fmt.Println(err) // without ids of yours, so that it can be logged
			fmt.Println("ask for rf_1005, and quote", failed.RequestID)
		}
	}
	// Output:
	// ok - done
	// rate_limited - resubmit
	// bad_request - correct
	// forbidden - fix setup
	// conflict - find out
	// server_error - find out
	// refunds: submit: failed (status 504 Gateway Timeout, request id req-504, 1 attempt): the outcome is unknown, the refund may have been recorded
	// ask for rf_1005, and quote req-504
}

// Without a database, the same can be done in the loop. After an unknown outcome, a ledger of the
// service is asked until it can say whether the refund is recorded. Nothing is sent again before
// it says no.
func ExampleActionFindOut() {
	service := httpmock.NewMockTransport() // stands in for the service, whose first response is lost
	service.RegisterResponder("POST", "https://refund.example.com/v1/acct_1/refunds",
		httpmock.NewStringResponder(504, "").Then(httpmock.NewStringResponder(201, "")))
	client, err := refunds.NewClient("https://refund.example.com", refunds.WithHTTPClient(&http.Client{Transport: service}))
	if err != nil {
		fmt.Println(err)
		return
	}
	answers := []string{"not known yet", "not known yet", "not recorded"} // of the ledger
	find := func() string {
		answer := answers[0]
		answers = answers[1:]
		fmt.Println("the ledger says:", answer)
		return answer
	}

	submit := func(ctx context.Context, account string, refund *refunds.Refund) error {
		for {
			_, err := client.Submit(ctx, account, refund)
			if refunds.ActionOf(err) != refunds.ActionFindOut {
				return err // nil, or what the other actions say
			}
			wait := time.Millisecond // a minute in your program: until then the request can still leave
			answer := "not known yet"
			for answer == "not known yet" {
				select {
				case <-time.After(wait):
				case <-ctx.Done():
					return err // it stays unknown: keep it, and ask later
				}
				answer, wait = find(), 2*wait
			}
			if answer == "recorded" {
				return nil
			}
		}
	}
	fmt.Println(submit(context.Background(), "acct_1", &refunds.Refund{RefundID: "rf_1006", Amount: new(int64(2500)), Currency: "USD"}))
	// Output:
	// the ledger says: not known yet
	// the ledger says: not known yet
	// the ledger says: not recorded
	// <nil>
}
