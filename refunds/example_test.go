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

// A gateway between here and the service gave up waiting. The service may have
// recorded the refund all the same, so the library does not send it again; what the
// error holds helps to find out.
func Example_unknownOutcome() {
	service := httpmock.NewMockTransport()
	service.RegisterResponder("POST", "https://refund.example.com/v1/acct_1/refunds",
		httpmock.NewStringResponder(504, "").HeaderSet(http.Header{"X-Request-Id": {"req-8"}}))

	client, err := refunds.NewClient("https://refund.example.com",
		refunds.WithHTTPClient(&http.Client{Transport: service}))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Submit(context.Background(), "acct_1", &refunds.Refund{
		RefundID: "rf_1002",
		Amount:   new(int64(1095)),
		Currency: "JPY",
	})
	if !errors.Is(err, refunds.ErrOutcomeUnknown) {
		fmt.Println(err)
		return
	}
	fmt.Println(err) // without ids of yours, so that it can be logged
	if unknown, ok := errors.AsType[*refunds.OutcomeError](err); ok {
		fmt.Println("ask for", unknown.RefundID, "sent", unknown.Attempts, "time, status", unknown.Evidence.StatusCode)
	}
	if failure, ok := errors.AsType[*refunds.Error](err); ok {
		fmt.Println("quote", failure.RequestID)
	}
	// Output:
	// refunds: submit: failed (status 504 Gateway Timeout, request id req-8, 1 attempt): the outcome is unknown, the refund may have been recorded
	// ask for rf_1002 sent 1 time, status 504
	// quote req-8
}

// A worker decides what to do with a refund, and counts why under a name for its metrics.
func ExampleActionOf() {
	service := httpmock.NewMockTransport() // stands in for the service
	statuses := []int{201, 429, 422, 403, 409, 503}
	for _, status := range statuses {
		service.RegisterResponder("POST", fmt.Sprintf("https://refund.example.com/v1/acct_%d/refunds", status), httpmock.NewStringResponder(status, ""))
	}
	client, err := refunds.NewClient("https://refund.example.com",
		refunds.WithHTTPClient(&http.Client{Transport: service}), refunds.WithMaxRetries(0))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, status := range statuses {
		_, err := client.Submit(context.Background(), fmt.Sprint("acct_", status), &refunds.Refund{RefundID: "rf_1005"})
		condition := "ok"
		if failed, ok := errors.AsType[*refunds.Error](err); ok {
			condition = failed.Condition()
		}
		switch refunds.ActionOf(err) {
		case refunds.ActionDone:
			fmt.Println(condition, "- accepted")
		case refunds.ActionResubmit:
			fmt.Println(condition, "- put it back into the queue")
		case refunds.ActionCorrect:
			fmt.Println(condition, "- show the record to somebody who can correct it")
		case refunds.ActionFixSetup:
			fmt.Println(condition, "- stop, and put it back into the queue")
		default: // ActionFindOut
			fmt.Println(condition, "- ask whether it was recorded")
		}
	}
	// Output:
	// ok - accepted
	// rate_limited - put it back into the queue
	// bad_request - show the record to somebody who can correct it
	// forbidden - stop, and put it back into the queue
	// conflict - ask whether it was recorded
	// server_error - ask whether it was recorded
}
