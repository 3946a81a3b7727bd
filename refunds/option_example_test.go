package refunds_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// No credential is documented for refunds. Where the service asks for one
// all the same, a token is fetched once and kept; when it is revoked, the refund is
// refused with 401, and sent once more with another one.
func ExampleWithTokenSource() {
	fake := refundstest.Start() // stands in for the service
	defer fake.Close()

	fetched := 0
	client, err := refunds.NewClient(fake.URL(), refunds.WithTokenSource(
		refunds.CachedToken(func(ctx context.Context) (string, time.Time, error) {
			fetched++ // ask your identity provider here, with ctx
			return fmt.Sprint("token-", fetched), time.Now().Add(time.Hour), nil
		})))
	if err != nil {
		fmt.Println(err)
		return
	}
	fake.RevokeToken("token-1")
	_, err = client.Submit(context.Background(), "acct_1", &refunds.Refund{RefundID: "rf_1"})
	fmt.Println("error:", err, "tokens fetched:", fetched, "recorded:", len(fake.Recorded()))
	// Output:
	// error: <nil> tokens fetched: 2 recorded: 1
}

// Nobody told you the service's rate limit. The client finds it: a 429 proves that
// nothing was recorded, so the refund is sent again.
func ExampleWithAdaptiveRate() {
	fake := refundstest.Start() // stands in for the service
	defer fake.Close()
	fake.Script(refundstest.Fault{}, refundstest.Fault{Status: http.StatusTooManyRequests})

	client := fake.Client(
		refunds.WithAdaptiveRate(refunds.AdaptiveRate{Start: 20, Max: 200}), // in requests a second
		refunds.WithRetryWait(0, 0))                                         // for this example only
	records := slices.Values([]*refunds.Refund{{RefundID: "rf_1"}, {RefundID: "rf_2"}, {RefundID: "rf_3"}})
	o := refunds.BulkOptions{Concurrency: 1}
	for s, err := range client.SubmitAll(context.Background(), refunds.Items("acct_1", records), o) {
		fmt.Println(s.RefundID, s.Outcome, err, "after", s.Attempts)
	}
	// Output:
	// rf_1 accepted <nil> after 1
	// rf_2 accepted <nil> after 2
	// rf_3 accepted <nil> after 1
}
