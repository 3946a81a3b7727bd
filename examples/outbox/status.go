package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
	"github.com/carddata/carddata-go/examples/outbox/table"
)

const statusUsage = `[flags]

Tells how many refunds are in which state and why, what is to be looked at, whether
a worker lives, and when one last sent something. "outbox resolve -state STATE" lists
them one by one.

Exit code: 0; 1 failed; 2 usage or configuration; 3 something is to be looked at:
refunds are unknown or absent, or pending for longer than they should be or without
a job, or a response came after a decision.
`

// toLookAt says what somebody has to look at.
func toLookAt(s *refundoutbox.Summary, overdue time.Duration) (lines []string) {
	add := func(n int, format string, args ...any) {
		if n > 0 {
			lines = append(lines, table.Number(n)+" "+fmt.Sprintf(format, args...))
		}
	}
	add(s.Unknown, "unknown: the service may have them, or not (outbox resolve)")
	add(s.Absent, "absent: the service said that it does not have them (outbox resolve -state absent)")
	if waited := time.Duration(s.OldestPending) * time.Second; waited > overdue {
		add(s.Pending, "pending, the oldest for %v: is a worker running, and getting through?", waited)
	}
	add(s.Jobless, "pending without a job: a worker gives them jobs within a minute")
	add(s.LateResponses, "late responses that came after a decision (outbox resolve -log, then -seen)")
	return lines
}

func (p *process) status(ctx context.Context, args []string) error {
	flags, file := newFlags("status")
	overdue := flags.Duration("overdue", 30*time.Minute, "how long a refund may be pending")
	asJSON := flags.Bool("json", false, "the counts as JSON, for monitoring")
	if err := p.parse(flags, statusUsage, args); err != nil {
		return err
	}
	db, err := p.openChecked(ctx, *file, false)
	if err != nil {
		return err
	}
	defer db.Close()
	s, err := refundoutbox.Summarize(ctx, db)
	if err != nil {
		return err
	}
	attention := toLookAt(&s, *overdue)
	if *asJSON {
		err = json.NewEncoder(p.stdout).Encode(s)
	} else {
		err = p.tell(ctx, db, &s, attention)
	}
	if err == nil && len(attention) > 0 {
		return errAttention
	}
	return err
}

// tell prints the summary, and why refunds have their states.
func (p *process) tell(ctx context.Context, db *refundoutbox.Database, s *refundoutbox.Summary, attention []string) error {
	waiting := ""
	if s.Pending > 0 {
		waiting = fmt.Sprintf("the oldest for %v; %s tried in vain", time.Duration(s.OldestPending)*time.Second, table.Number(s.Failing))
	}
	if err := table.Print(p.stdout, "", [][]any{
		{"enqueued", s.Enqueued}, {"accepted", s.Accepted}, {"rejected", s.Rejected}, {"unknown", s.Unknown},
		{"absent", s.Absent}, {"pending", s.Pending, waiting}, {"sending", s.Sending}, {"decisions", s.Decisions, "outbox resolve -log"},
	}); err != nil {
		return err
	}
	alive := "no worker lives"
	if s.WorkerLives {
		alive = "a worker lives, and said so " + ago(s.WorkerSeen)
	}
	if s.LastSent != "" {
		alive += "; the last request was " + ago(s.LastSent)
	}
	if s.PausedUntil != "" {
		alive += fmt.Sprintf("; the queue is paused until %s, after %s", s.PausedUntil, table.Cell(s.PausedFor))
	}
	fmt.Fprintln(p.stdout, alive)
	for _, text := range attention {
		fmt.Fprintln(p.stdout, "LOOK:", text)
	}
	for _, state := range []refundoutbox.State{refundoutbox.Rejected, refundoutbox.Unknown, refundoutbox.Absent, refundoutbox.Pending} {
		reasons, err := refundoutbox.Reasons(ctx, db, state)
		if err != nil {
			return err
		}
		var rows [][]any
		for _, r := range reasons {
			rows = append(rows, []any{r.Text, r.Count})
		}
		if err := table.Print(p.stdout, string(state)+", by reason", rows); err != nil {
			return err
		}
	}
	return nil
}

func ago(text string) string {
	t, _ := time.Parse(time.RFC3339, text)
	return fmt.Sprint(time.Since(t).Truncate(time.Second), " ago")
}

// printRefunds prints a table of refunds: nothing of a record but what identifies it.
func printRefunds(w io.Writer, title string, refunds []refundoutbox.Listed, limit int) error {
	rows := [][]any{{"row", "account", "refund_id", "amount", "attempt", "sent", "request_id", "reason"}}
	for _, l := range refunds[:min(limit, len(refunds))] {
		rows = append(rows, []any{fmt.Sprint(l.Row), l.Account, l.RefundID, l.Money(), l.Attempt, l.SentAt, l.RequestID, l.Reason})
	}
	if more := len(refunds) - limit; more > 0 {
		rows = append(rows, []any{fmt.Sprintf("and %s more (-limit)", table.Number(more))})
	}
	return table.Print(w, title, rows)
}
