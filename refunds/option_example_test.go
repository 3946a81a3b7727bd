package refunds_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/jarcoal/httpmock"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
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

// A row says what became of each refund, also after a kill. The map stands for the table of the
// package comment. Only a refund without a row, or one to resubmit, is submitted, and of two calls
// that have read the same row, one begins.
func ExampleWithBeforeSend() {
	fake := refundstest.NewServer(nil) // stands in for the service
	defer fake.Close()
	fake.Script(refundstest.Fault{Refuse: true}, refundstest.Fault{}, refundstest.Fault{Drop: true, Process: true})
	client := fake.Client(refunds.WithRetryWait(0, 0)) // no wait: for this example only

	type row struct{ state, call string }
	var mu sync.Mutex
	table := map[string]row{"rf_1": {"begun", "call 1"}} // of a process that was killed
	load := func(id string) row {
		mu.Lock()
		defer mu.Unlock()
		return table[id]
	}
	replace := func(id string, to row, from ...row) bool {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(from, table[id]) {
			return false
		}
		table[id] = to
		return true
	}
	submit := func(id, call string) {
		read, begun := load(id), row{"begun", call}
		if read.state != "" && read.state != refunds.ActionResubmit.String() {
			fmt.Println(id, "is", read.state)
			return
		}
		begin := refunds.WithBeforeSend(func(context.Context) error {
			if !replace(id, begun, read, begun) { // a retry finds the row of its own call
				return errors.New("another call has begun")
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_, err := client.Submit(ctx, "acct-1", &refunds.Refund{RefundID: id}, begin)
		replace(id, row{refunds.ActionOf(err).String(), call}, begun)
		fmt.Println(id, "is", load(id).state)
	}

	submit("rf_1", "call 2") // in flight elsewhere, or unknown once it can no longer be
	submit("rf_2", "call 3")
	submit("rf_3", "call 4")
	submit("rf_3", "call 5") // the message came again
	// Output:
	// rf_1 is begun
	// rf_2 is done
	// rf_3 is find out
	// rf_3 is find out
}
