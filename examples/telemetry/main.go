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
	"go.opentelemetry.io/otel/trace"
)

const usage = `usage: telemetry [-json]

Submits two refunds to a built-in sandbox. The first is told to come back in a
second and is accepted then; of the second, the connection breaks before the answer.
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
	err = demo(ctx, t, engine, server.URL(), refundTransport())
	if err := errors.Join(err, t.Shutdown(context.WithoutCancel(ctx))); err != nil {
		return target.Fail(ctx, stderr, err)
	}
	return 0
}

// demo submits the two refunds.
func demo(ctx context.Context, t *telemetry, engine *sandbox.Engine, url string, transport http.RoundTripper) error {
	client, err := newClient(url, t, transport)
	if err != nil {
		return err
	}
	engine.Script(sandbox.Refunds, sandbox.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Second})
	if err := refund(ctx, t.tracer, client, "re-1001"); err != nil {
		return err
	}
	engine.Script(sandbox.Refunds, sandbox.Fault{DropAfter: true})
	if err := refund(ctx, t.tracer, client, "re-1002"); !errors.Is(err, refunds.ErrOutcomeUnknown) {
		return fmt.Errorf("the second refund: %w", err)
	}
	return ctx.Err()
}

// newClient returns a client whose attempts are traced, and whose events become
// metrics. Nothing else about it is different.
func newClient(url string, t *telemetry, transport http.RoundTripper) (*refunds.Client, error) {
	return refunds.NewClient(url,
		refunds.WithTokenSource(refunds.StaticToken("sandbox-credential")),
		refunds.WithHTTPClient(&http.Client{Transport: t.traced("/v1/{account_id}/refunds", transport)}),
		refunds.WithLogger(slog.New(t.events)),
	)
}

// refundTransport is what a client uses of its own accord, as far as it matters:
// a kept connection that the service has closed leaves an outcome unknown.
func refundTransport() http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.IdleConnTimeout = 2 * time.Second
	transport.DisableCompression = true
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(true)
	return transport
}

// refund submits one refund in a span of its own, below which are its attempts.
func refund(ctx context.Context, tracer trace.Tracer, client *refunds.Client, id string) error {
	ctx, span := tracer.Start(ctx, "submit refund")
	defer span.End()
	_, err := client.Submit(ctx, "acct-7", &refunds.Refund{
		RefundID: id, Amount: new(int64(10150)), Currency: "USD",
		PaymentMethodDetails: refunds.PaymentMethodDetails{
			Card: refunds.PaymentMethodCard{Attributes: refunds.CardAttributes{BIN: "411111"}},
		},
	})
	return err
}
