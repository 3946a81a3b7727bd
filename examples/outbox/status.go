package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
)

const statusUsage = `Tells how many refunds are in which state and why, what is to be looked at, whether a
worker lives, and when one last sent something.

Exit code 3: something is to be looked at.`

func (p *process) status(ctx context.Context, args []string) error {
	overdue := p.flags.Duration("overdue", 30*time.Minute, "how long a refund may be pending")
	asJSON := p.flags.Bool("json", false, "the counts as JSON, for monitoring")
	if err := p.parse(statusUsage, args); err != nil {
		return err
	}
	db, err := p.open(ctx, false, false)
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
		return exitAttention
	}
	return err
}

// toLookAt says what somebody has to look at.
func toLookAt(s *refundoutbox.Summary, overdue time.Duration) (lines []string) {
	add := func(n int, text string) {
		if n > 0 {
			lines = append(lines, fmt.Sprint("LOOK: ", n, " ", text))
		}
	}
	add(s.Unknown, "unknown: the service may have them, or not (outbox resolve)")
	add(s.Absent, "absent: the service said that it does not have them (outbox resolve -state absent)")
	if since(s.PendingSince) > overdue {
		add(s.Pending, fmt.Sprintf("pending, the oldest for %v: is a worker running, and getting through?", since(s.PendingSince)))
	}
	add(s.PendingWithoutJob, "pending without a job: a worker gives them jobs within a minute")
	add(s.LateResponses, "late responses that came after a decision (outbox resolve -log, then -seen)")
	return lines
}

// tell prints the summary, and why refunds have their states.
func (p *process) tell(ctx context.Context, db *refundoutbox.Database, s *refundoutbox.Summary, attention []string) error {
	reasons, err := refundoutbox.Reasons(ctx, db)
	if err != nil {
		return err
	}
	waiting := ""
	if s.Pending > 0 {
		waiting = fmt.Sprintf("the oldest for %v; %d tried in vain", since(s.PendingSince), s.PendingFailed)
	}
	printTable(p.stdout, "", [][]any{
		{"enqueued", s.Enqueued}, {"accepted", s.Accepted}, {"rejected", s.Rejected}, {"unknown", s.Unknown},
		{"absent", s.Absent}, {"pending", s.Pending, waiting}, {"sending", s.Sending},
	})
	alive := "no worker lives"
	if s.WorkerLives {
		alive = "a worker lives"
	}
	if s.LastSent != "" {
		alive += fmt.Sprintf("; the last request was %v ago", since(s.LastSent))
	}
	if s.PausedUntil != "" {
		alive += fmt.Sprintf("; the queue is paused until %s, after %s", s.PausedUntil, cell(s.PausedFor))
	}
	fmt.Fprintln(p.stdout, strings.Join(append([]string{alive}, attention...), "\n"))
	var rows [][]any
	for _, r := range reasons {
		rows = append(rows, []any{r.State, r.Reason, r.Count})
	}
	printTable(p.stdout, "by reason", rows)
	return nil
}

// since is the time since a time of the database, or 0 for none.
func since(text string) time.Duration {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return time.Since(t).Truncate(time.Second)
	}
	return 0
}

// printTable prints rows of cells below a title, if there are any.
func printTable(w io.Writer, title string, rows [][]any) {
	if len(rows) == 0 {
		return
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer out.Flush()
	indent := ""
	if title != "" {
		fmt.Fprintf(out, "\n%s\n", title)
		indent = "  "
	}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, value := range row {
			cells[i] = cell(fmt.Sprint(value))
		}
		fmt.Fprintln(out, indent+strings.Join(cells, "\t"))
	}
}

// cell makes text of others fit for a cell.
func cell(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return target.Line(text)
}
