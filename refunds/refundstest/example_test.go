package refundstest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/carddata/carddata-go/internal/exampletest"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

func ExampleServer() {
	var t exampletest.T // in a test, its own t
	defer t.End()

	fake := refundstest.NewServer(&t)
	fake.Script(refundstest.Fault{DropAfter: true}) // recorded, but never answered

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
