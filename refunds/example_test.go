package refunds_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/jarcoal/httpmock"

	"github.com/carddata/carddata-go/refunds"
)

// Each of the four outcomes of a submission needs a different reaction.
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
	case errors.Is(err, refunds.ErrOutcomeUnknown), errors.Is(err, refunds.ErrConflict):
		fmt.Println("perhaps recorded, find out first:", err)
	case errors.Is(err, refunds.ErrNotSent):
		fmt.Println("not sent:", err) // see the example of Error.Retryable
	case errors.Is(err, refunds.ErrRejected):
		fmt.Println("refused:", err) // see there, too
	}
	// Output:
	// accepted: 201 req-7
}

// A gateway between here and the service gave up waiting. The service may have
// recorded the refund all the same, so the library does not send it again; what the
// error holds helps to find out.
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

// The response is not documented. Once you know what your service sends, check for it:
// here status 201 and an id. Anything else may come from a proxy.
func ExampleWithReceiptCheck() {
	service := httpmock.NewMockTransport()
	service.RegisterResponder("POST", "https://refund.example.com/v1/acct_1/refunds",
		httpmock.NewStringResponder(200, `{"error":"upstream timed out"}`))

	client, err := refunds.NewClient("https://refund.example.com",
		refunds.WithHTTPClient(&http.Client{Transport: service}),
		refunds.WithReceiptCheck(func(r *refunds.Receipt) error {
			var body struct{ ID string }
			if r.StatusCode != http.StatusCreated || json.Unmarshal(r.Body, &body) != nil || body.ID == "" {
				return errors.New("not the service's receipt")
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

// The service's operator has confirmed that records with one refund_id are one
// refund. An unknown outcome may then be submitted again, which the client does.
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

// By default each refund has a connection of its own. Reuse saves round trips, and
// leaves outcomes unknown that a new connection would not: see the figures above.
func ExampleWithConnectionReuse() {
	for _, opts := range [][]refunds.Option{nil, {refunds.WithConnectionReuse(2 * time.Second)}} {
		var connections atomic.Int32
		service := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
		service.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		}
		service.Start()
		client, err := refunds.NewClient(service.URL, opts...)
		if err != nil {
			fmt.Println(err)
			return
		}
		for i := range 3 {
			if _, err := client.Submit(context.Background(), "acct_1", &refunds.Refund{RefundID: fmt.Sprint("rf_", i)}); err != nil {
				fmt.Println(err)
			}
		}
		service.Close()
		fmt.Println("3 refunds,", connections.Load(), "connections")
	}
	// Output:
	// 3 refunds, 3 connections
	// 3 refunds, 1 connections
}

// A worker decides what to do with a refund that was not accepted, as Actions in the
// package comment says, and counts it under a name for its metrics.
func ExampleError_Retryable() {
	service := httpmock.NewMockTransport()
	statuses := []int{429, 422, 403, 409, 503}
	for _, status := range statuses {
		service.RegisterResponder("POST", fmt.Sprintf("https://refund.example.com/v1/acct_%d/refunds", status), httpmock.NewStringResponder(status, ""))
	}
	client, err := refunds.NewClient("https://refund.example.com",
		refunds.WithHTTPClient(&http.Client{Transport: service}), refunds.WithMaxRetries(0))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, status := range statuses {
		_, err := client.Submit(context.Background(), fmt.Sprint("acct_", status), &refunds.Refund{RefundID: "rf_1005"})
		failure, _ := errors.AsType[*refunds.Error](err)
		is := func(condition error) bool { return errors.Is(err, condition) }
		switch {
		case is(refunds.ErrOutcomeUnknown), is(refunds.ErrConflict):
			fmt.Println(failure.Condition(), "- find out first")
		case failure.Retryable():
			fmt.Println(failure.Condition(), "- submit it again later")
		case is(refunds.ErrInvalidArgument), is(refunds.ErrBadRequest), is(refunds.ErrTooLarge):
			fmt.Println(failure.Condition(), "- correct the record")
		default:
			fmt.Println(failure.Condition(), "- stop, correct the setup")
		}
	}
	// Output:
	// rate_limited - submit it again later
	// bad_request - correct the record
	// forbidden - stop, correct the setup
	// conflict - find out first
	// server_error - find out first
}
