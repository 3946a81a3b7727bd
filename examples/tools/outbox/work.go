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
	"time"

	"github.com/carddata/carddata-go/examples/tools/internal/cli"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/outbox"
)

const workUsage = `Submits what is enqueued, until Ctrl-C or SIGTERM: then it begins nothing further, and
ends when the requests in flight have their outcomes. A second signal ends it at once,
which leaves those refunds unknown. CARDDATA_REFUND_URL names the service, and
CARDDATA_REFUND_TOKEN a bearer credential, if it asks for one.`

func (c *command) work(ctx context.Context, args []string) error {
	config := outbox.Config{Log: slog.New(slog.NewTextHandler(c.stderr, nil))}
	c.flags.IntVar(&config.Concurrency, "concurrency", 16, "requests in flight")
	c.flags.BoolVar(&config.Drain, "drain", false, "end when nothing is left that can be sent")
	c.flags.BoolVar(&config.Resubmit, "resubmit-unknown", false, `send a refund without a clear response again, without asking. It is your word
that the service takes records with one refund_id as one refund, which is not
documented. Each time is kept as a decision`)
	find := c.flags.String("find-out", "", `ask this `+"`URL`"+`, with the parameters account and refund_id, whether the service has an
unknown refund: {"recorded":true} or {"recorded":false}; anything else is not known yet`)
	c.flags.BoolVar(&config.ResubmitNotRecorded, "resubmit-not-recorded", false, "send a refund again that -find-out says is not recorded")
	c.canMigrate()
	if err := c.parse(workUsage, args); err != nil {
		return err
	}
	if *find != "" {
		address, err := url.Parse(*find)
		if err != nil || address.Host == "" {
			return cli.Usage("outbox: -find-out is no URL")
		}
		config.FindOut = finder(*address)
	}
	switch {
	case config.ResubmitNotRecorded && *find == "":
		return cli.Usage("outbox: -resubmit-not-recorded needs -find-out")
	case config.Concurrency < 1:
		return cli.Usage("outbox: -concurrency must be at least 1")
	case c.env("CARDDATA_REFUND_URL") == "":
		return cli.Usage("outbox: CARDDATA_REFUND_URL is missing")
	}
	var options []refunds.Option
	if token := c.env("CARDDATA_REFUND_TOKEN"); token != "" {
		options = append(options, refunds.WithTokenSource(refunds.StaticToken(token)))
	}
	var err error
	if config.Client, err = refunds.NewClient(c.env("CARDDATA_REFUND_URL"), options...); err != nil {
		return cli.Usage("outbox: %w", err)
	}
	s, err := c.openToWork(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	return s.Run(ctx, config)
}

// finder asks an address about refunds. Its errors quote nothing of them.
func finder(address url.URL) func(context.Context, outbox.Entry) (outbox.Verdict, error) {
	return func(ctx context.Context, e outbox.Entry) (outbox.Verdict, error) {
		about := address
		query := about.Query()
		query.Set("account", e.AccountID)
		query.Set("refund_id", e.RefundID)
		about.RawQuery = query.Encode()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, about.String(), nil)
		if err != nil {
			return "", errors.New("-find-out is no URL")
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return "", errors.New("-find-out does not answer")
		}
		defer resp.Body.Close()
		var answer struct{ Recorded *bool }
		if resp.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&answer) != nil {
			return "", fmt.Errorf("-find-out answered with status %d and no JSON object", resp.StatusCode)
		}
		switch {
		case answer.Recorded == nil:
			return "", nil
		case *answer.Recorded:
			return outbox.Recorded, nil
		}
		return outbox.NotRecorded, nil
	}
}

// pendingAtMost is how long a refund may be pending before somebody has to look.
const pendingAtMost = 30 * time.Minute

const statusUsage = `Tells how many refunds are in which state and why, and what somebody has to look at: then it
ends with exit code 3. A refund may be pending for half an hour.`

func (c *command) status(ctx context.Context, args []string) error {
	if err := c.parse(statusUsage, args); err != nil {
		return err
	}
	db, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	defer db.close()
	s, err := db.Status(ctx)
	if err != nil {
		return err
	}
	var rows [][]any
	for _, state := range []outbox.State{outbox.Accepted, outbox.Rejected, outbox.Unknown, outbox.Pending, outbox.Sending} {
		rows = append(rows, []any{state, s.Counts[state]})
	}
	rows = append(rows, []any{"pending since", stamp(s.PendingSince)}, []any{"last sent", stamp(s.LastSent)})
	for _, r := range s.Reasons {
		rows = append(rows, []any{"why " + r.State, r.Count, r.Reason})
	}
	printTable(c.stdout, rows)
	if s.Counts[outbox.Unknown] > 0 {
		fmt.Fprintln(c.stdout, "LOOK: unknown: the service may have them, or not (outbox list)")
		err = errLook
	}
	if s.Counts[outbox.Pending] > 0 && time.Since(s.PendingSince) > pendingAtMost {
		fmt.Fprintln(c.stdout, "LOOK: pending for long: does a worker run, and get through?")
		err = errLook
	}
	return err
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}
