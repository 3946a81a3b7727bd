package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/carddata/carddata-go/examples/internal/target"
)

const statusUsage = `usage: outbox status [flags]

Tells how many refunds are in which state, which were rejected and why, and which
await a decision, whether a worker lives, and when one last sent something.

  -db FILE   the SQLite file, ` + defaultFile + `
  -limit N   most lines of each table (20)
  -json      the counts as JSON, for monitoring

Exit code: 0; 1 failed; 2 usage or configuration; 3 refunds await a decision, or an
answer came after one.
`

// A summary is how many refunds are in which state.
type summary struct {
	Enqueued int `json:"enqueued"`
	Accepted int `json:"accepted"`
	Rejected int `json:"rejected"`
	Unknown  int `json:"unknown"` // awaiting a decision
	Pending  int `json:"pending"`
	Sending  int `json:"sending"`
	// OldestPending is how long a refund has waited to be sent.
	OldestPending int `json:"oldest_pending_seconds"`
	// Failing are those of the pending that were tried before, and did not get through.
	Failing       int    `json:"failing"`
	OldestFailing int    `json:"oldest_failing_seconds"` // since it was enqueued
	Decisions     int    `json:"decisions"`
	LateAnswers   int    `json:"late_answers"` // that came after a decision, and that nobody has seen
	LastSent      string `json:"last_sent"`    // when a worker last marked a refund; "": never
	WorkerLives   bool   `json:"worker_lives"`
}

// attention tells whether somebody has to look.
func (s *summary) attention() bool { return s.Unknown+s.LateAnswers > 0 }

func summarize(ctx context.Context, db session) (s summary, err error) {
	err = db.query(ctx, func(scan scanner) error {
		var state, oldest, sent, failing string
		var n, failures int
		if err := scan(&state, &n, &oldest, &sent, &failures, &failing); err != nil {
			return err
		}
		s.LastSent = max(s.LastSent, sent)
		*map[string]*int{
			accepted: &s.Accepted, rejected: &s.Rejected, unknown: &s.Unknown, pending: &s.Pending, sending: &s.Sending,
		}[state] = n
		s.Enqueued += n
		if state == pending {
			s.OldestPending = int(time.Since(parseTime(oldest)).Seconds())
			if s.Failing = failures; failures > 0 {
				s.OldestFailing = int(time.Since(parseTime(failing)).Seconds())
			}
		}
		return nil
	}, `SELECT state, COUNT(*), MIN(enqueued_at), MAX(sent_at), COUNT(CASE WHEN attempts > 0 THEN 1 END),
		COALESCE(MIN(CASE WHEN attempts > 0 THEN enqueued_at END), '') FROM outbox_refund GROUP BY state`)
	if err != nil {
		return s, err
	}
	err = db.query(ctx, func(scan scanner) error { return scan(&s.Decisions) }, `SELECT COUNT(*) FROM outbox_decision`)
	if err != nil {
		return s, err
	}
	late, err := lateAnswers(ctx, db)
	s.LateAnswers = len(late)
	return s, err
}

func (p *process) status(ctx context.Context, args []string) (int, error) {
	var at location
	flags := flag.NewFlagSet("outbox status", flag.ContinueOnError)
	at.flag(flags)
	limit := flags.Int("limit", 20, "")
	asJSON := flags.Bool("json", false, "")
	if code, ok := p.parse(flags, statusUsage, args); !ok {
		return code, nil
	}
	if flags.NArg() > 0 || *limit < 0 {
		return 0, target.Usage("outbox: status takes no arguments, and a -limit that is not negative")
	}
	db, err := p.open(ctx, at)
	if err != nil {
		return 0, err
	}
	defer db.close()
	s, err := summarize(ctx, db)
	if err == nil {
		s.WorkerLives, err = db.anyWorker(ctx)
	}
	switch {
	case err != nil:
		return 0, err
	case *asJSON:
		err = json.NewEncoder(p.stdout).Encode(s)
	default:
		err = p.tell(ctx, db, s, *limit)
	}
	if err == nil && s.attention() {
		return exitAttention, nil
	}
	return 0, err
}

// tell prints the summary, and tables of what somebody is to look at.
func (p *process) tell(ctx context.Context, db session, s summary, limit int) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	line := func(name string, n int, note string) {
		if note != "" {
			note = "\t" + note
		}
		fmt.Fprintf(w, "%s\t%s%s\n", name, grouped(n), note)
	}
	line("enqueued", s.Enqueued, "")
	line("accepted", s.Accepted, "")
	line("rejected", s.Rejected, "")
	line("unknown", s.Unknown, "awaiting a decision: outbox resolve")
	waiting := ""
	if s.Pending > 0 {
		waiting = fmt.Sprintf("the oldest for %v", time.Duration(s.OldestPending)*time.Second)
	}
	if s.Failing > 0 {
		waiting += fmt.Sprintf("; %s tried in vain, the oldest for %v", grouped(s.Failing), time.Duration(s.OldestFailing)*time.Second)
	}
	line("pending", s.Pending, waiting)
	line("sending", s.Sending, "")
	line("decisions", s.Decisions, "outbox resolve -log")
	if s.LateAnswers > 0 {
		line("late answers", s.LateAnswers, "that came after a decision: outbox resolve -log, and -seen")
	}
	alive := "no worker lives"
	if s.WorkerLives {
		alive = "a worker lives"
	}
	if s.LastSent != "" {
		alive += fmt.Sprintf("; nothing was sent for %v", time.Since(parseTime(s.LastSent)).Truncate(time.Second))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(p.stdout, alive)
	for _, table := range []struct{ title, state string }{
		{"rejected, by reason", rejected}, {"unknown, by reason", unknown}, {"pending after a failure, by reason", pending},
	} {
		if err := printReasons(ctx, p.stdout, db, table.title, table.state); err != nil {
			return err
		}
	}
	for _, state := range []string{rejected, unknown} {
		if err := printRefunds(ctx, p.stdout, db, state+", the latest", filter{state: state}, limit); err != nil {
			return err
		}
	}
	return nil
}

func printReasons(ctx context.Context, out io.Writer, db session, title, state string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	rows := 0
	err := db.query(ctx, func(scan scanner) error {
		var reason string
		var n int
		if err := scan(&reason, &n); err != nil {
			return err
		}
		if rows++; rows == 1 {
			fmt.Fprintf(w, "\n%s\n", title)
		}
		_, err := fmt.Fprintf(w, "  %s\t%s\n", printable(reason), grouped(n))
		return err
	}, `SELECT reason, COUNT(*) FROM outbox_refund WHERE state = $1 AND reason <> '' GROUP BY reason ORDER BY COUNT(*) DESC, reason LIMIT 20`, state)
	if err != nil {
		return err
	}
	return w.Flush()
}

// printRefunds prints a table of refunds: nothing of them but id, amount and
// currency.
func printRefunds(ctx context.Context, out io.Writer, db session, title string, f filter, limit int) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	rows := 0
	err := f.each(ctx, db, limit, func(r listed) error {
		if rows++; rows == 1 {
			fmt.Fprintf(w, "\n%s\n  row\taccount\trefund_id\tamount\tattempt\tsent\treason\n", title)
		}
		_, err := fmt.Fprintf(w, "  %d\t%s\t%s\t%s\t%d\t%s\t%s\n", r.row, printable(r.account), printable(r.refundID), printable(r.amount), r.attempt, r.sentAt, printable(r.reason))
		return err
	})
	if err != nil {
		return err
	}
	return w.Flush()
}
