// Refund submits the refund record in a file, or on standard input, and says what to do
// next. The record is the JSON object of the service's interface, its amount an integer.
//
//	echo '{"refund_id":"rf_1001","amount":10150,"currency":"USD"}' | go run ./examples/refund -sandbox
//
// CARDDATA_REFUND_URL and CARDDATA_ACCOUNT_ID name the service and the account, and
// CARDDATA_REFUND_TOKEN a credential, if there is one. Exit code: 0 accepted, 2 usage or
// environment, 3 submit it again later, 4 correct the record, 5 correct the setup, 6 find
// out first. "go run" turns all but 0 into 1.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	_ "github.com/carddata/carddata-go/internal/sandbox/demo" // the flag -sandbox: delete this line
	"github.com/carddata/carddata-go/refunds"
)

func main() {
	flag.Parse()
	var options []refunds.Option
	if token := os.Getenv("CARDDATA_REFUND_TOKEN"); token != "" { // the service documents no credential
		options = append(options, refunds.WithTokenSource(refunds.StaticToken(token)))
	}
	client, err := refunds.NewClient(os.Getenv("CARDDATA_REFUND_URL"), options...)
	if err != nil {
		exit(2, "check CARDDATA_REFUND_URL: ", err)
	}
	account := os.Getenv("CARDDATA_ACCOUNT_ID")
	if account == "" {
		exit(2, "CARDDATA_ACCOUNT_ID is not set")
	}
	input := os.Stdin
	if flag.NArg() > 0 {
		if input, err = os.Open(flag.Arg(0)); err != nil {
			exit(2, err)
		}
	}
	decoder := json.NewDecoder(input)
	decoder.DisallowUnknownFields() // a misspelt member would be left out in silence
	decoder.UseNumber()             // a float64 would round the numbers in metadata
	var record refunds.Refund
	if err := decoder.Decode(&record); err != nil {
		exit(4, "the record cannot be read (an amount is an integer, without comma or point): ", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		exit(4, "more than one record")
	}

	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	receipt, err := client.Submit(ctx, account, &record)
	switch refunds.ActionOf(err) {
	case refunds.ActionDone:
		fmt.Printf("accepted: %v (status %d, request id %q)\n", &record, receipt.StatusCode, receipt.RequestID)
	case refunds.ActionResubmit:
		exit(3, &record, " was not recorded, submit it again later: ", err)
	case refunds.ActionCorrect:
		exit(4, &record, " was not recorded, correct it: ", err)
	case refunds.ActionFixSetup:
		exit(5, &record, " was not recorded, check URL, account, credential and proxy: ", err)
	default: // refunds.ActionFindOut
		exit(6, &record, " may have been recorded, find out before it is submitted again: ", err)
	}
}

func exit(code int, message ...any) {
	fmt.Fprint(os.Stderr, append(message, "\n")...)
	os.Exit(code)
}
