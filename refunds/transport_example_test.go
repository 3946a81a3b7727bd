package refunds_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// closedAtNight lets nothing through while it is closed.
type closedAtNight struct {
	base   http.RoundTripper
	closed bool
}

func (c *closedAtNight) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.closed {
		return nil, errors.New("closed until morning")
	}
	return c.base.RoundTrip(r)
}

// Your round tripper sees every attempt, and all guarantees stay: what it does not
// pass on was not sent.
func ExampleWithTransport() {
	fake := refundstest.Start() // stands in for the service
	defer fake.Close()

	gate := &closedAtNight{closed: true}
	client, err := refunds.NewClient(fake.URL(), refunds.WithMaxRetries(0),
		refunds.WithTransport(func(base http.RoundTripper) http.RoundTripper {
			gate.base = base
			return gate
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Submit(context.Background(), "acct_1", &refunds.Refund{RefundID: "rf_1"})
	fmt.Println("not sent:", errors.Is(err, refunds.ErrNotSent), "recorded:", len(fake.Recorded()))

	gate.closed = false
	_, err = client.Submit(context.Background(), "acct_1", &refunds.Refund{RefundID: "rf_1"})
	fmt.Println("error:", err, "recorded:", len(fake.Recorded()))
	// Output:
	// not sent: true recorded: 0
	// error: <nil> recorded: 1
}
