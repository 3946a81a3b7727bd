package refunds_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/jarcoal/httpmock"

	"github.com/carddata/carddata-go/refunds"
)

// What to do after a submission is one value.
func ExampleClient_Submit() {
	service := httpmock.NewMockTransport() // stands in for the service
	service.RegisterResponder("POST", "https://refund.example.com/v1/acct_1/refunds",
		httpmock.NewStringResponder(201, "").HeaderSet(http.Header{"X-Request-Id": {"req-7"}}))

	client, err := refunds.NewClient("https://refund.example.com",
		refunds.WithHTTPClient(&http.Client{Transport: service})) // without this line: over the network
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
	for _, status := range statuses {
		service.RegisterResponder("POST", fmt.Sprintf("https://refund.example.com/v1/acct_%d/refunds", status),
			httpmock.NewStringResponder(status, "").HeaderSet(http.Header{"X-Request-Id": {fmt.Sprint("req-", status)}}))
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
		if unknown, ok := errors.AsType[*refunds.OutcomeError](err); ok && unknown.Outcome == refunds.OutcomeUnknown {
			fmt.Println(err) // without ids of yours, so that it can be logged
			fmt.Println("ask for", unknown.RefundID, "and quote", failed.RequestID)
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
	// ask for rf_1005 and quote req-504
}
