package refunds_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
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

// A ledger says what became of each record, also after a kill. The map stands for a table,
// and begin for an INSERT with a unique key, or an UPDATE that renews the time of a retry. A call
// can fail before it begins: only the row that it wrote is replaced.
func ExampleWithBeforeSend() {
	fake := refundstest.Start() // stands in for the service
	defer fake.Close()
	fake.Script(refundstest.Fault{Status: 429}, refundstest.Fault{}, refundstest.Fault{DropAfter: true})
	client := fake.Client(refunds.WithRetryWait(0, 0)) // no wait: for this example only

	ledger := map[string]string{"rf_1": "begun at 09:00"} // by a process that was killed
	submit := func(ctx context.Context, id string) {
		var mine atomic.Bool // a call can end at its deadline while begin still runs
		begin := refunds.WithBeforeSend(func(context.Context) error {
			if ledger[id] != "" && !mine.Load() { // a retry of this call finds its own row
				return errors.New("begun before")
			}
			ledger[id] = "begun" // now
			mine.Store(true)
			return nil
		})
		_, err := client.Submit(ctx, "acct-1", &refunds.Refund{RefundID: id}, begin)
		if mine.Load() {
			ledger[id] = refunds.ActionOf(err).String()
		}
		fmt.Println(id, "is", ledger[id])
	}

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	submit(ctx, "rf_1") // in flight elsewhere, or unknown if it began more than 30 seconds ago
	submit(ctx, "rf_2")
	submit(ctx, "rf_3")
	cancel()
	submit(ctx, "rf_3") // the message came again, and this call ended before it began
	// Output:
	// rf_1 is begun at 09:00
	// rf_2 is done
	// rf_3 is find out
	// rf_3 is find out
}
