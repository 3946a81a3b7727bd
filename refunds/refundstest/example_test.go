package refundstest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

func ExampleServer() {
	fake := refundstest.NewServer(nil) // in a test: refundstest.NewServer(t)
	defer fake.Close()

	fake.Script(refundstest.Fault{Drop: true, Process: true}) // recorded, but without a response

	client := fake.Client() // or your service, made with fake.HTTPClient() or fake.URL()
	_, err := client.Submit(context.Background(), "acct_1", &refunds.Refund{RefundID: "rf_1001", Amount: new(int64(10150))})
	fmt.Println("outcome unknown:", errors.Is(err, refunds.ErrOutcomeUnknown))
	for _, recorded := range fake.Recorded() {
		fmt.Println("recorded:", recorded.AccountID, recorded.Refund.RefundID, *recorded.Refund.Amount)
	}
	// Output:
	// outcome unknown: true
	// recorded: acct_1 rf_1001 10150
}
