package refunds_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/jarcoal/httpmock"

	"github.com/carddata/carddata-go/refunds"
)

// A record is submitted, and each of the four things that can become of it has
// its own answer.
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
	switch {
	case err == nil:
		fmt.Println("accepted:", receipt.StatusCode, receipt.RequestID)
	case errors.Is(err, refunds.ErrNotSent):
		fmt.Println("nothing was recorded, submit it again later:", err)
	case errors.Is(err, refunds.ErrRejected):
		fmt.Println("refused, correct it:", err)
	case errors.Is(err, refunds.ErrOutcomeUnknown):
		fmt.Println("perhaps recorded, find out first:", err)
	}
	// Output:
	// accepted: 201 req-7
}

// A gateway between here and the service gave up waiting. The service may have
// recorded the refund all the same, so that the library does not send it again;
// what the error holds helps to find out.
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
