package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
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
	// What River warns of is the state of jobs, which does not count.
	config := outbox.Config{Log: slog.New(slog.NewTextHandler(masker{c.stderr}, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	c.flags.IntVar(&config.Concurrency, "concurrency", 16, "requests in flight")
	c.flags.BoolVar(&config.Drain, "drain", false, "end when nothing is left that can be sent")
	c.flags.BoolVar(&config.Resubmit, "resubmit-unknown", false, `send a refund without a clear response again, without asking. It is your word
that the service takes records with one refund_id as one refund, which is not
documented. Each time is logged as a decision`)
	if err := c.parse(workUsage, args); err != nil {
		return err
	}
	switch {
	case config.Concurrency < 1:
		return cli.Usage("outbox: -concurrency must be at least 1")
	case c.env("CARDDATA_REFUND_URL") == "":
		return cli.Usage("outbox: CARDDATA_REFUND_URL is missing (demo has a sandbox)")
	}
	var options []refunds.Option
	if token := c.env("CARDDATA_REFUND_TOKEN"); token != "" {
		options = append(options, refunds.WithTokenSource(refunds.StaticToken(token)))
	}
	var err error
	if config.Client, err = refunds.NewClient(c.env("CARDDATA_REFUND_URL"), options...); err != nil {
		return cli.Usage("outbox: %w", err)
	}
	s, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	defer s.close()
	return s.Run(ctx, config)
}

// A masker takes card numbers out of what is logged.
type masker struct{ io.Writer }

func (m masker) Write(p []byte) (int, error) {
	_, err := fmt.Fprintln(m.Writer, cli.Line(strings.TrimSpace(string(p))))
	return len(p), err
}

// pendingAtMost is how long a refund may be pending before somebody has to look.
const pendingAtMost = 30 * time.Minute

const statusUsage = `Tells how many refunds are in which state and why, whether a worker lives, and what somebody
has to look at: then it ends with exit code 3. A refund may be pending for half an hour.`

func (c *command) status(ctx context.Context, args []string) error {
	asJSON := c.flags.Bool("json", false, "as JSON, for monitoring")
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
	overdue := s.Pending > 0 && time.Since(s.PendingSince) > pendingAtMost
	var look []string
	for _, l := range []struct {
		is   bool
		text string
	}{
		{s.Unknown > 0, "unknown: the service may have them, or not (outbox list)"},
		{s.Absent > 0, "absent: the service said that it does not have them (outbox list)"},
		{overdue, "pending for long: does a worker live, and get through?"},
		{s.LateResponses > 0, "late responses after a decision (outbox log, and then outbox resolve -as seen)"},
	} {
		if l.is {
			look = append(look, "LOOK: "+l.text)
		}
	}
	if *asJSON {
		err = json.NewEncoder(c.stdout).Encode(s)
	} else {
		c.printStatus(&s, look)
	}
	if err == nil && len(look) > 0 {
		err = errLook
	}
	return err
}

func (c *command) printStatus(s *outbox.Status, look []string) {
	rows := [][]any{
		{"accepted", s.Accepted}, {"rejected", s.Rejected}, {"unknown", s.Unknown}, {"absent", s.Absent},
		{"pending", s.Pending, stamp(s.PendingSince)}, {"sending", s.Sending, stamp(s.LastSent)}, {"late responses", s.LateResponses},
		{"a worker lives", s.WorkerLives},
	}
	if !s.PausedUntil.IsZero() {
		rows = append(rows, []any{"paused until", stamp(s.PausedUntil), s.PausedFor})
	}
	printTable(c.stdout, "", rows)
	for _, line := range look {
		fmt.Fprintln(c.stdout, line)
	}
	rows = nil
	for _, r := range s.Reasons {
		rows = append(rows, []any{r.State, r.Reason, r.Count})
	}
	printTable(c.stdout, "by reason", rows)
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}
