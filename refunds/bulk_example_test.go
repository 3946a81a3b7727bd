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
		Ordered:     true,             // for this example only
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
	// Output:
	// save rf_1 accepted
	// save rf_2 accepted
	// recorded: 2
}

// A queue waits for its next message. Meanwhile ReadAhead yields the results of earlier
// messages. What the loop does with a message is the record's action. It stops after an
// ActionFixSetup if Progress reports a pause whose Reason is the Condition of that error: the
// other records would fail, too. Otherwise the action may be about one refund or one account.
// A queue that may deliver a message twice needs the module refunds/outbox.
func ExampleBulkOptions_readAhead() {
	fake := refundstest.NewServer(nil) // stands in for the service
	defer fake.Close()
	fake.Script(refundstest.Fault{}, refundstest.Fault{Status: 422}, refundstest.Fault{Drop: true, Process: true})
	fake.Script(slices.Repeat([]refundstest.Fault{{Status: 401}}, 2)...)

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	queue := make(chan string, 5) // of messages
	for _, message := range []string{"rf_1", "rf_2", "rf_3", "rf_4", "rf_5"} {
		queue <- message
	}
	items := func(yield func(refunds.Item) bool) {
		for {
			select {
			case message := <-queue:
				if !yield(refunds.Item{AccountID: "acct_1", Refund: &refunds.Refund{RefundID: message}, Ref: message}) {
					fmt.Println("give back", message) // it was neither taken nor sent
					return
				}
			case <-ctx.Done(): // the input must end with the context
				return
			}
		}
	}
	var progress refunds.BulkProgress
	o := refunds.BulkOptions{
		ReadAhead:   true,
		GiveUpAfter: -1, // the queue has no end
		Progress:    func(p refunds.BulkProgress) { progress = p },
		Concurrency: 1, // for this example only
	}
	for s, err := range fake.Client().SubmitAll(ctx, items, o) {
		if err != nil {
			fmt.Println("stopped:", errors.Is(err, context.Canceled))
			break
		}
		message := s.Ref.(string)
		switch s.Action() {
		case refunds.ActionDone:
			fmt.Println("delete", message)
		case refunds.ActionResubmit:
			fmt.Println("give back", message)
		case refunds.ActionCorrect:
			fmt.Println("set aside", message)
		case refunds.ActionFixSetup:
			fmt.Println("set aside", message)
			// A pause for another reason, such as an outage, says nothing of the setup.
			if failed, ok := errors.AsType[*refunds.Error](s.Err); ok && progress.Paused && progress.Reason == failed.Condition() {
				fmt.Println("stop")
				stop()
			}
		default: // refunds.ActionFindOut
			fmt.Println("set aside, and find out about", message)
		}
	}
	// Output:
	// delete rf_1
	// set aside rf_2
	// set aside, and find out about rf_3
	// set aside rf_4
	// set aside rf_5
	// stop
	// stopped: true
}
