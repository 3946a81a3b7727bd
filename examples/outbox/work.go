package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
	"github.com/carddata/carddata-go/refunds"
)

const workUsage = `Submits what is enqueued, until Ctrl-C or SIGTERM: then it begins nothing further, and
ends when the requests on the wire have their outcomes. A second signal ends it at once,
which leaves those refunds unknown. CARDDATA_REFUND_URL names the service, and
CARDDATA_REFUND_TOKEN a bearer credential, if it asks for one.`

var settings = target.Settings{URL: "CARDDATA_REFUND_URL", Optional: []string{"CARDDATA_REFUND_TOKEN"}}

func (p *process) work(ctx context.Context, args []string) error {
	// River's warnings are about jobs, whose state does not count.
	c := refundoutbox.Config{Log: slog.New(slog.NewTextHandler(lineWriter{p.stderr}, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	flags := p.flags
	flags.IntVar(&c.Concurrency, "concurrency", 16, "requests in flight")
	flags.Float64Var((*float64)(&c.Rate), "rate", 0, "most requests a second of this worker; 0: any")
	flags.BoolVar(&c.Drain, "drain", false, "end when nothing is left that can be sent")
	flags.BoolVar(&c.Resubmit, "resubmit-unknown", false, `send a refund without a clear response again, without asking. It is your word
that the service takes records with one refund_id as one refund, which is not
documented. Each time is logged as a decision`)
	flags.Func("lookup", "ask `URL`"+`/ACCOUNT/REFUND_ID about unknown refunds, five minutes after their request. The
service description has no such endpoint: see lookup in work.go for what one has to
say`, func(text string) error {
		base, err := url.Parse(text)
		if err != nil || base.Host == "" {
			return errors.New("this is no URL")
		}
		c.Resolver = &lookup{base}
		return nil
	})
	if err := p.parse(workUsage, args); err != nil {
		return err
	}
	switch _, set := p.env(settings.URL); {
	case c.Concurrency < 1 || !(c.Rate >= 0):
		return target.Usage("outbox: -concurrency must be at least 1, -rate not negative")
	case !set:
		// A refund that a sandbox accepts would be lost.
		return target.Usage("outbox: %s is missing (demo has a sandbox)", settings.URL)
	}
	service, err := target.Open(p.stderr, p.env, settings)
	if err != nil {
		return err
	}
	defer service.Close()
	options := service.Options()
	if token := service.Value("CARDDATA_REFUND_TOKEN"); token != "" {
		options = append(options, refunds.WithTokenSource(refunds.StaticToken(token)))
	}
	if c.Client, err = refunds.NewClient(service.URL, options...); err != nil {
		return err
	}
	db, err := p.open(ctx, false, false)
	if err != nil {
		return err
	}
	defer db.Close()
	return refundoutbox.Run(ctx, db, c)
}

// A lineWriter takes card numbers out of what is logged.
type lineWriter struct{ io.Writer }

func (w lineWriter) Write(p []byte) (int, error) {
	_, err := fmt.Fprintln(w.Writer, target.Line(string(p[:max(0, len(p)-1)])))
	return len(p), err
}

// lookup is a resolver for whoever has an endpoint for GET URL/ACCOUNT/REFUND_ID. It
// says {"found": true, "amount": 10150, "currency": "USD"}, or {"found": false} if
// the refund never came, each with status 200. Anything else, such as a proxy's 404,
// is asked again later.
type lookup struct{ base *url.URL }

func (l *lookup) Resolve(ctx context.Context, account, refundID string) (found bool, amount int64, currency string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.base.JoinPath(url.PathEscape(account), url.PathEscape(refundID)).String(), nil)
	if err != nil {
		return false, 0, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, 0, "", fmt.Errorf("lookup: %w", err.(*url.Error).Err) // without the URL
	}
	defer resp.Body.Close()
	var record struct {
		Found    *bool  `json:"found"`
		Amount   int64  `json:"amount"`
		Currency string `json:"currency"`
	}
	if resp.StatusCode != http.StatusOK {
		return false, 0, "", fmt.Errorf("lookup: status %d", resp.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&record); err != nil || record.Found == nil {
		return false, 0, "", errors.New("lookup: the response does not say whether it was found")
	}
	return *record.Found, record.Amount, record.Currency, nil
}
