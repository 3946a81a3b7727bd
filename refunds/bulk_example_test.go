package refunds_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/carddata/carddata-go/internal/exampletest"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// Any number of refunds, from anything that yields them, and an answer for each.
func ExampleClient_SubmitAll() {
	var t exampletest.T
	defer t.End()
	fake := refundstest.NewServer(&t) // stands in for the service
	fake.Script(
		refundstest.Fault{},
		refundstest.Fault{Status: 422},
		refundstest.Fault{DropAfter: true}, // recorded, but never answered
	)
	client := fake.Client()

	records := slices.Values([]*refunds.Refund{
		{RefundID: "rf_1", Amount: new(int64(10150)), Currency: "USD"},
		{RefundID: "rf_2", Amount: new(int64(1095)), Currency: "JPY"},
		{RefundID: "rf_3", Amount: new(int64(500)), Currency: "EUR"},
		{RefundID: "rf_1", Amount: new(int64(10150)), Currency: "USD",
			RefundResponse: refunds.RefundResponse{Status: "approved"}}, // the first one's later status
	})
	o := refunds.BulkOptions{Concurrency: 1} // more, if the order of the output does not matter
	for s, err := range client.SubmitAll(context.Background(), "acct_1", records, o) {
		switch {
		case s.Index < 0:
			fmt.Println("stopped:", err)
		case err == nil:
			fmt.Println(s.RefundID, "accepted:", s.Receipt.StatusCode)
		case errors.Is(err, refunds.ErrNotSent):
			fmt.Println(s.RefundID, "was not sent, submit it again later")
		case errors.Is(err, refunds.ErrRejected):
			fmt.Println(s.RefundID, "was refused, correct it")
		case errors.Is(err, refunds.ErrOutcomeUnknown):
			fmt.Println(s.RefundID, "was perhaps recorded, find out first")
		}
	}
	// Output:
	// rf_1 accepted: 200
	// rf_2 was refused, correct it
	// rf_3 was perhaps recorded, find out first
	// rf_1 accepted: 200
}
