package refunds_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/jarcoal/httpmock"

	"github.com/carddata/carddata-go/refunds"
)

// The response is not documented. Once you know what your service sends, check for it, here
// status 201 and an id. Anything else may come from a proxy.
func ExampleWithReceiptCheck() {
	service := httpmock.NewMockTransport()
	service.RegisterResponder("POST", "https://refund.example.com/v1/acct_1/refunds",
		httpmock.NewStringResponder(200, `{"success":false,"status":"declined"}`))

	client, err := refunds.NewClient("https://refund.example.com",
		refunds.WithHTTPClient(&http.Client{Transport: service}),
		refunds.WithReceiptCheck(func(r *refunds.Receipt) error {
			// The client knows "error" and "errors". What else a service says, such as
			// success: false, only you can know.
			var body struct {
				Success bool
				Status  string
			}
			if json.Unmarshal(r.Body, &body) != nil || !body.Success || body.Status == "declined" {
				return errors.New("the service does not say that it accepted the refund")
			}
			return nil
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Submit(context.Background(), "acct_1", &refunds.Refund{RefundID: "rf_1003"})
	fmt.Println("unknown:", errors.Is(err, refunds.ErrOutcomeUnknown))
	// Output:
	// unknown: true
}

// The service's operator has confirmed that records with the same refund_id are one refund.
// The client may then retry after an unknown outcome.
func ExampleWithResubmit() {
	service := httpmock.NewMockTransport()
	service.RegisterResponder("POST", "https://refund.example.com/v1/acct_1/refunds",
		httpmock.NewStringResponder(503, "").Then(httpmock.NewStringResponder(200, "")))

	client, err := refunds.NewClient("https://refund.example.com",
		refunds.WithHTTPClient(&http.Client{Transport: service}),
		refunds.WithRetryWait(0, 0), // for this example only
		refunds.WithResubmit())
	if err != nil {
		fmt.Println(err)
		return
	}
	receipt, err := client.Submit(context.Background(), "acct_1", &refunds.Refund{RefundID: "rf_1004"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("accepted after", receipt.Attempts, "attempts")
	// Output:
	// accepted after 2 attempts
}

// The operator has confirmed that a 429 comes from the gateway, which signs none of them, and before
// anything is recorded. The client may then retry after it.
func ExampleWithRefusals() {
	service := httpmock.NewMockTransport()
	service.RegisterResponder("POST", "https://refund.example.com/v1/acct_1/refunds",
		httpmock.NewStringResponder(429, "").Then(httpmock.NewStringResponder(201, "")))

	client, err := refunds.NewClient("https://refund.example.com",
		refunds.WithHTTPClient(&http.Client{Transport: service}),
		refunds.WithRetryWait(0, 0), // for this example only
		refunds.WithRefusals(429))
	if err != nil {
		fmt.Println(err)
		return
	}
	receipt, err := client.Submit(context.Background(), "acct_1", &refunds.Refund{RefundID: "rf_1004"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("accepted after", receipt.Attempts, "attempts")
	// Output:
	// accepted after 2 attempts
}
