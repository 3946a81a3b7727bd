// Telemetry submits a refund that needs two attempts, and another whose outcome
// stays unknown, and shows their traces and metrics.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

const usage = `usage: telemetry [-json]

Submits two refunds to a built-in sandbox. The first is told to come back in a
second and is accepted then; the second loses its connection before the response.
Prints the trace of each, with its attempts, and the metrics of both.

  -json  print what OpenTelemetry's stdout exporters print

Where OTEL_EXPORTER_OTLP_ENDPOINT names a collector, such as
http://localhost:4318, both go there, too.

Exit code: 0 shown; 1 failed; 2 usage; 130 interrupted.
`

func main() {
	os.Exit(run(target.Signals(), os.Args[1:], os.Stdout, os.Stderr, os.LookupEnv))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer, env func(string) (string, bool)) int {
	flags := flag.NewFlagSet("telemetry", flag.ContinueOnError)
	asJSON := flags.Bool("json", false, "")
	if code, ok := target.Parse(flags, usage, args, stdout, stderr); !ok {
		return code
	}
	if flags.NArg() > 0 {
		return target.Fail(ctx, stderr, target.Usage("telemetry: no arguments besides -json (-h helps)"))
	}
	collector, _ := env("OTEL_EXPORTER_OTLP_ENDPOINT")
	engine := sandbox.New()
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}
	defer server.Close()
	t, err := newTelemetry(ctx, stdout, *asJSON, collector != "")
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}
	err = demo(ctx, t, engine, server.URL(), refunds.WithTransport(t.traced))
	if err := errors.Join(err, t.Shutdown(context.WithoutCancel(ctx))); err != nil {
		return target.Fail(ctx, stderr, err)
	}
	return 0
}

// demo submits the two refunds.
func demo(ctx context.Context, t *telemetry, engine *sandbox.Engine, url string, network refunds.Option) error {
	client, err := newClient(url, t, network)
	if err != nil {
		return err
	}
	engine.Script(sandbox.Refunds, sandbox.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Second})
	if err := refund(ctx, t, client, "re-1001"); err != nil {
		return err
	}
	engine.Script(sandbox.Refunds, sandbox.Fault{DropAfter: true})
	if err := refund(ctx, t, client, "re-1002"); !errors.Is(err, refunds.ErrOutcomeUnknown) {
		return fmt.Errorf("the second refund: %w", err)
	}
	return ctx.Err()
}

// newClient returns a client whose events become metrics. WithTransport puts the
// spans around the library's own transport, so every guarantee is kept.
func newClient(url string, t *telemetry, network refunds.Option) (*refunds.Client, error) {
	return refunds.NewClient(url,
		refunds.WithTokenSource(refunds.StaticToken("sandbox-credential")),
		network,
		refunds.WithLogger(slog.New(t.events)),
	)
}

// refund submits one refund in a span of its own, above those of its attempts.
func refund(ctx context.Context, t *telemetry, client *refunds.Client, id string) error {
	return t.observe(ctx, "refunds", "submit", func(ctx context.Context) error {
		_, err := client.Submit(ctx, "acct-7", &refunds.Refund{
			RefundID: id, Amount: new(int64(10150)), Currency: "USD",
			PaymentMethodDetails: refunds.PaymentMethodDetails{
				Card: refunds.PaymentMethodCard{Attributes: refunds.CardAttributes{BIN: "411111"}},
			},
		})
		return err
	})
}
