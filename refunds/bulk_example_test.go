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
		if err != nil {
			fmt.Println("ended early:", err)
			return
		}
		fmt.Println(s.RefundID, "was", s.Outcome, "- to do:", s.Action())
	}
	// Output:
	// rf_1 was accepted - to do: done
	// rf_2 was rejected - to do: correct
	// rf_3 was unknown - to do: find out
	// rf_1 was accepted - to do: done
}

// A table is worked again after a crash. Each row holds what to do about it, or that it was begun,
// which is written before the row is sent: so what the crash left is told from what was never begun.
// One job at a time works the table. Once the setup is corrected, change "fix setup" to "resubmit".
func ExampleClient_SubmitAll_resume() {
	fake := refundstest.NewServer(nil) // stands in for the service
	defer fake.Close()
	fake.Script(refundstest.Fault{}, refundstest.Fault{Status: http.StatusConflict})

	type row struct{ id, state string }
	table := []*row{ // as the run before left it
		{"rf_1", "done"},
		{"rf_2", "begun"}, // the process was killed meanwhile
		{"rf_3", "resubmit"},
		{"rf_4", ""},
		{"rf_5", ""},
	}
	rows := func(yield func(refunds.Item) bool) {
		for _, r := range table {
			switch r.state {
			case "begun":
				r.state = refunds.ActionFindOut.String()
			case "", refunds.ActionResubmit.String():
				begin := refunds.WithBeforeSend(func(context.Context) error {
					r.state = "begun" // committed
					return nil
				})
				item := refunds.Item{AccountID: "acct_1", Refund: &refunds.Refund{RefundID: r.id}, Ref: r, Options: []refunds.CallOption{begin}}
				if !yield(item) {
					return
				}
			}
		}
	}
	o := refunds.BulkOptions{Concurrency: 1} // for this example only
	for s, err := range fake.Client().SubmitAll(context.Background(), rows, o) {
		if err != nil {
			fmt.Println("ended early:", err)
			break
		}
		s.Ref.(*row).state = s.Action().String()
	}
	for _, r := range table {
		fmt.Println(r.id, r.state)
	}
	// Output:
	// rf_1 done
	// rf_2 find out
	// rf_3 done
	// rf_4 find out
	// rf_5 done
}

// A job shows how far it is, and whether the service is down.
func ExampleBulkProgress() {
	fake := refundstest.NewServer(nil) // stands in for the service
	defer fake.Close()
	fake.Script(refundstest.Fault{}, refundstest.Fault{Status: http.StatusInternalServerError})

	records := slices.Values([]*refunds.Refund{{RefundID: "rf_1"}, {RefundID: "rf_2"}, {RefundID: "rf_3"}})
	show := func(p refunds.BulkProgress) {
		if p.Paused() {
			fmt.Println("the service is down:", p.Reason)
		}
		fmt.Printf("%d done: %d accepted, %d to find out\n", p.Done, p.Accepted, p.Unknown)
	}
	o := refunds.BulkOptions{Concurrency: 1, Progress: show}
	for _, err := range fake.Client().SubmitAll(context.Background(), refunds.Items("acct_1", records), o) {
		if err != nil {
			fmt.Println("ended early:", err)
			break
		}
	}
	// Output:
	// 1 done: 1 accepted, 0 to find out
	// 2 done: 1 accepted, 1 to find out
	// 3 done: 2 accepted, 1 to find out
}

// An onRequest calls a function before each request.
type onRequest struct {
	http.RoundTripper
	call func()
}

func (o onRequest) RoundTrip(r *http.Request) (*http.Response, error) {
	o.call()
	return o.RoundTripper.RoundTrip(r)
}

// SIGTERM ends ctx: nothing new is sent, and requests in flight may finish within Grace.
// Abandoned saves the results that the loop does not take.
func ExampleBulkOptions_stop() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fake := refundstest.NewServer(nil) // stands in for the service
	defer fake.Close()
	var sent atomic.Int32
	client := fake.Client(refunds.WithHTTPClient(&http.Client{Transport: onRequest{fake.HTTPClient().Transport, func() {
		if sent.Add(1) == 2 {
			stop() // as SIGTERM would, while two requests are in flight
		}
		<-ctx.Done()
	}}}))

	records := slices.Values([]*refunds.Refund{{RefundID: "rf_1"}, {RefundID: "rf_2"}, {RefundID: "rf_3"}})
	save := func(s refunds.Submission) { fmt.Println("save", s.RefundID, s.Outcome) }
	o := refunds.BulkOptions{
		Concurrency: 2,
		Grace:       20 * time.Second, // less than the time between SIGTERM and SIGKILL
		Abandoned:   save,
	}
	for s, err := range client.SubmitAll(ctx, refunds.Items("acct_1", records), o) {
		if err != nil {
			fmt.Println("stopped:", err)
			break
		}
		save(s)
		if ctx.Err() != nil {
			break // or go on, and the loop gets what Abandoned gets
		}
	}
	fmt.Println("recorded:", len(fake.Recorded()))
	// Unordered output:
	// save rf_1 accepted
	// save rf_2 accepted
	// recorded: 2
}

// A worker of a queue takes a message only if the service works, and gives one back with the time after which it
// may be delivered again. So an outage uses up no deliveries. A queue that may deliver a message twice needs
// the module refunds/outbox.
func ExampleClient_Stats() {
	fake := refundstest.NewServer(nil) // stands in for the service
	defer fake.Close()
	fake.Script(refundstest.Fault{}, refundstest.Fault{Status: 422}, refundstest.Fault{Drop: true, Process: true})
	client := fake.Client()

	for _, message := range []string{"rf_1", "rf_2", "rf_3", "rf_4"} {
		if until := client.Stats().PausedUntil; !until.IsZero() {
			time.Sleep(time.Until(until)) // the service is down: the message stays in the queue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		_, err := client.Submit(ctx, "acct_1", &refunds.Refund{RefundID: message})
		cancel()
		switch refunds.ActionOf(err) {
		case refunds.ActionDone:
			fmt.Println("delete", message)
		case refunds.ActionResubmit:
			var failed *refunds.Error
			errors.As(err, &failed)
			fmt.Println("give back", message, "for", failed.RetryAfter)
		case refunds.ActionCorrect, refunds.ActionFixSetup:
			fmt.Println("set aside", message)
		default: // refunds.ActionFindOut
			fmt.Println("set aside, and find out about", message)
		}
	}
	// Output:
	// delete rf_1
	// set aside rf_2
	// set aside, and find out about rf_3
	// delete rf_4
}
