package refunds_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jarcoal/httpmock"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// Any number of refunds, from anything that yields them, and a result for each.
func ExampleClient_SubmitAll() {
	service := httpmock.NewMockTransport() // stands in for the service
	service.RegisterResponder("POST", "https://refund.example.com/v1/acct_1/refunds",
		httpmock.NewStringResponder(200, "").
			Then(httpmock.NewStringResponder(422, "")).
			Then(httpmock.NewStringResponder(504, "")).
			Then(httpmock.NewStringResponder(200, "")))
	client, err := refunds.NewClient("https://refund.example.com",
		refunds.WithHTTPClient(&http.Client{Transport: service})) // without this line: over the network
	if err != nil {
		fmt.Println(err)
		return
	}

	records := slices.Values([]*refunds.Refund{
		{RefundID: "rf_1", Amount: new(int64(10150)), Currency: "USD"},
		{RefundID: "rf_2", Amount: new(int64(1095)), Currency: "JPY"},
		{RefundID: "rf_3", Amount: new(int64(500)), Currency: "EUR"},
		{RefundID: "rf_1", Amount: new(int64(10150)), Currency: "USD",
			RefundResponse: refunds.RefundResponse{Status: "approved"}}, // the first one's later status
	})
	o := refunds.BulkOptions{Concurrency: 1} // more, if the order of the output does not matter
	for s, err := range client.SubmitAll(context.Background(), refunds.Items("acct_1", records), o) {
		switch {
		case s.Index < 0:
			fmt.Println("stopped:", err)
		case err == nil:
			fmt.Println(s.RefundID, "accepted:", s.Receipt.StatusCode)
		case errors.Is(err, refunds.ErrOutcomeUnknown), errors.Is(err, refunds.ErrConflict):
			fmt.Println(s.RefundID, "may have been recorded, find out first")
		default: // see the example of Error.Retryable
			fmt.Println(s.RefundID, "was", s.Outcome)
		}
	}
	// Output:
	// rf_1 accepted: 200
	// rf_2 was rejected
	// rf_3 may have been recorded, find out first
	// rf_1 accepted: 200
}

// A table of many accounts in one call. Where the service honors idempotency keys,
// each item has its own.
func ExampleItem() {
	service := httpmock.NewMockTransport()
	service.RegisterResponder("POST", "=~^https://refund.example.com/v1/[^/]+/refunds$",
		func(r *http.Request) (*http.Response, error) {
			fmt.Println(r.URL.Path, r.Header.Get("Idempotency-Key"))
			return httpmock.NewStringResponse(200, ""), nil
		})
	client, err := refunds.NewClient("https://refund.example.com",
		refunds.WithHTTPClient(&http.Client{Transport: service}))
	if err != nil {
		fmt.Println(err)
		return
	}

	table := []struct{ account, id, key string }{
		{"acct_1", "rf_1", "key-a"},
		{"acct_2", "rf_1", "key-b"},
	}
	items := func(yield func(refunds.Item) bool) {
		for _, row := range table {
			item := refunds.Item{
				AccountID: row.account,
				Refund:    &refunds.Refund{RefundID: row.id},
				Options:   []refunds.Option{refunds.WithHeader("Idempotency-Key", row.key)},
			}
			if !yield(item) {
				return
			}
		}
	}
	for s, err := range client.SubmitAll(context.Background(), items, refunds.BulkOptions{Concurrency: 1}) {
		fmt.Println(s.AccountID, s.RefundID, s.Outcome, err)
	}
	// Output:
	// /v1/acct_1/refunds key-a
	// acct_1 rf_1 accepted <nil>
	// /v1/acct_2/refunds key-b
	// acct_2 rf_1 accepted <nil>
}

// A table is submitted again after a crash. Each row is marked as begun before it can
// be sent, so that what the crash left is told from what was never begun. One job at a
// time works the table.
func ExampleClient_SubmitAll_resume() {
	fake := refundstest.Start() // stands in for the service
	defer fake.Close()

	type row struct {
		refund  *refunds.Refund
		begun   bool
		outcome string
	}
	table := []*row{ // as the run before left it
		{refund: &refunds.Refund{RefundID: "rf_1"}, begun: true, outcome: "accepted"},
		{refund: &refunds.Refund{RefundID: "rf_2"}, begun: true}, // the process was killed meanwhile
		{refund: &refunds.Refund{RefundID: "rf_3"}},
		{refund: &refunds.Refund{RefundID: "rf_4"}},
	}
	var taken []*row // by Index
	records := func(yield func(*refunds.Refund) bool) {
		for _, r := range table {
			if r.begun {
				continue
			}
			r.begun = true // committed, and only if no other process has begun it
			taken = append(taken, r)
			if !yield(r.refund) {
				return
			}
		}
	}
	for s, err := range fake.Client().SubmitAll(context.Background(), refunds.Items("acct_1", records), refunds.BulkOptions{}) {
		if s.Index < 0 {
			fmt.Println("ended early:", err)
			continue
		}
		taken[s.Index].outcome = s.Outcome.String()
	}
	for _, r := range table {
		if r.begun && r.outcome == "" {
			r.outcome = "unknown: find out before you submit it again"
		}
		fmt.Println(r.refund.RefundID, r.outcome)
	}
	// Output:
	// rf_1 accepted
	// rf_2 unknown: find out before you submit it again
	// rf_3 accepted
	// rf_4 accepted
}

// SIGTERM ends ctx: nothing new is sent, and requests in flight may finish within Grace.
// Abandoned saves the results that the loop does not take.
func ExampleBulkOptions_stop() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fake := refundstest.Start() // stands in for the service
	defer fake.Close()
	var arrived atomic.Int32
	fake.ScriptFunc(func(refundstest.Request) refundstest.Fault {
		if arrived.Add(1) == 2 {
			stop() // as SIGTERM would, while two requests are in flight
		}
		<-ctx.Done()
		return refundstest.Fault{}
	})

	records := slices.Values([]*refunds.Refund{{RefundID: "rf_1"}, {RefundID: "rf_2"}, {RefundID: "rf_3"}})
	save := func(s refunds.Submission, err error) { fmt.Println("save", s.RefundID, s.Outcome) }
	o := refunds.BulkOptions{
		Concurrency: 2,
		Ordered:     true,             // for this example only
		Grace:       20 * time.Second, // less than the time between SIGTERM and SIGKILL
		Abandoned:   save,
	}
	for s, err := range fake.Client().SubmitAll(ctx, refunds.Items("acct_1", records), o) {
		if s.Index < 0 {
			fmt.Println("stopped:", err)
			break
		}
		save(s, err)
		if ctx.Err() != nil {
			break // or go on, and the loop gets what Abandoned gets
		}
	}
	fmt.Println("recorded:", len(fake.Recorded()))
	// Output:
	// save rf_1 accepted
	// save rf_2 accepted
	// recorded: 2
}

// A queue waits for its next message. Meanwhile ReadAhead yields the results of earlier
// messages.
func ExampleBulkOptions_readAhead() {
	service := httpmock.NewMockTransport()
	service.RegisterResponder("POST", "https://refund.example.com/v1/acct_1/refunds", httpmock.NewStringResponder(200, ""))
	client, err := refunds.NewClient("https://refund.example.com",
		refunds.WithHTTPClient(&http.Client{Transport: service}))
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	queue := make(chan *refunds.Refund, 1)
	queue <- &refunds.Refund{RefundID: "rf_1"}
	records := func(yield func(*refunds.Refund) bool) {
		for {
			select {
			case r := <-queue:
				if !yield(r) {
					return // with ReadAhead, r was neither taken nor sent: give it back
				}
			case <-ctx.Done(): // it must end with the context
				return
			}
		}
	}
	o := refunds.BulkOptions{ReadAhead: true, GiveUpAfter: -1} // the queue has no end
	for s, err := range client.SubmitAll(ctx, refunds.Items("acct_1", records), o) {
		if s.Index < 0 {
			fmt.Println("stopped:", errors.Is(err, context.Canceled))
			continue
		}
		fmt.Println(s.RefundID, s.Outcome)
		stop() // here, after the first
	}
	// Output:
	// rf_1 accepted
	// stopped: true
}
