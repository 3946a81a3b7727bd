// Refund submits a refund record and tells what became of it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/refunds"
)

const usage = `usage: refund [-fault NAME] [FILE]

Submits the refund record in FILE, or on standard input, and prints what became
of it. The record is the JSON object of the service description; members that it
does not have are refused. In the built-in sandbox, a demo record is submitted if
standard input is a terminal or /dev/null.

  -fault NAME  in the built-in sandbox only, what goes wrong:
    drop-before  the connection breaks before the request is read
    drop-after   the refund is recorded, and the connection breaks before a response
    refuse       no connection can be made
    503          the service responds with 503
    429          the service responds with 429, and asks to wait for two minutes

CARDDATA_REFUND_URL and CARDDATA_ACCOUNT_ID name the service and the account,
CARDDATA_REFUND_TOKEN a bearer credential, if the service asks for one. If none of
them is set, a sandbox takes the record and forgets it. CARDDATA_INSECURE_HTTP=1
allows http beyond this machine.

Exit code: 0 accepted; 2 usage, configuration or an unusable record, nothing was
sent; 3 rejected; 4 not sent; 5 outcome unknown, find out before submitting it again;
130 interrupted before submitting. An interrupt afterwards ends with 4 or 5. "go run"
turns all but 0 into 1: build the program first.
`

const (
	exitRejected = 3
	exitNotSent  = 4
	exitUnknown  = 5
)

var settings = target.Settings{
	URL:      "CARDDATA_REFUND_URL",
	Required: []string{"CARDDATA_ACCOUNT_ID"},
	Optional: []string{"CARDDATA_REFUND_TOKEN"},
}

func main() {
	os.Exit(run(target.Signals(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv))
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) (string, bool)) int {
	flags := flag.NewFlagSet("refund", flag.ContinueOnError)
	fault := flags.String("fault", "", "")
	if code, ok := target.Parse(flags, usage, args, stdout, stderr); !ok {
		return code
	}
	service, err := target.Open(stderr, env, settings)
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}
	defer service.Close()
	if err := arrange(service, *fault); err != nil {
		return target.Fail(ctx, stderr, err)
	}
	record, err := readRecord(ctx, flags.Args(), stdin, stderr, service.Live())
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}

	options := service.Options()
	if token := service.Value("CARDDATA_REFUND_TOKEN"); token != "" {
		options = append(options, refunds.WithTokenSource(refunds.StaticToken(token)))
	}
	client, err := refunds.NewClient(service.URL, options...)
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}
	receipt, err := client.Submit(ctx, service.Value("CARDDATA_ACCOUNT_ID"), record)
	if err != nil {
		fmt.Fprintln(stderr, target.Line(err.Error()))
	}
	name := target.Line(fmt.Sprint(record))
	switch {
	case err == nil:
		fmt.Fprintf(stdout, "accepted: %s (status %d)\n", name, receipt.StatusCode)
		return 0
	case errors.Is(err, refunds.ErrInvalidArgument):
		return target.ExitUsage
	case errors.Is(err, refunds.ErrNotSent):
		advice := "correct the URL, the certificate or the proxy first"
		if failed, ok := errors.AsType[*refunds.Error](err); ok && failed.Retryable() {
			advice = "submit it again later"
		}
		fmt.Fprintf(stdout, "not sent: %s; nothing was recorded, %s\n", name, advice)
		return exitNotSent
	case errors.Is(err, refunds.ErrRateLimited):
		fmt.Fprintf(stdout, "rejected: %s; nothing was recorded, the service asks to send less often\n", name)
		return exitRejected
	case errors.Is(err, refunds.ErrRejected):
		fmt.Fprintf(stdout, "rejected: %s; the service refused it, correct what it objects to; after a 409, find out whether it has an earlier one\n", name)
		return exitRejected
	}
	fmt.Fprintf(stdout, "outcome unknown: %s; it may have been recorded, find out before submitting it again\n", name)
	return exitUnknown
}
