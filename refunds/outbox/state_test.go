package outbox

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

// TestRefusedAfterDoubt: the refusal of a refund that was sent again says nothing
// about the time before, which the service may have recorded.
func TestRefusedAfterDoubt(t *testing.T) {
	s := newSystem(t)
	s.enqueue(refund("a", 5))
	s.attempt(1, sandbox.Fault{DropAfter: true})
	s.check("unknown")
	s.decide(Unknown, Resubmit)
	s.attempt(1, sandbox.Fault{Status: 422})
	s.check("unknown")
	s.decide(Unknown, NotRecorded)
	s.attempt(1, sandbox.Fault{Status: 401}) // nothing was recorded
	s.check("pending")
	s.attempt(1, sandbox.Fault{Status: 422})
	s.check("unknown")
	if got := s.column(`SELECT reason FROM outbox_refund`); got != "422 scripted; an earlier attempt is in doubt" {
		t.Errorf("the reason is %s", got)
	}
	// An update with another amount is not taken for a correction.
	if e, err := s.place(Item{"acct", refund("a", 6), false}); !errors.Is(err, ErrAmountChanged) {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestClientResubmit: a client that repeats refunds by itself sends each once here, and
// what is unknown stays so. Of River, only warnings are logged.
func TestClientResubmit(t *testing.T) {
	s := newSystem(t)
	var err error
	if s.w.Client, err = refunds.NewClient(s.url, refunds.WithResubmit(), refunds.WithMaxRetries(5)); err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	s.w.Log, s.w.Drain = slog.New(slog.NewTextHandler(&logged, nil)), true
	s.enqueue(refund("a", 5))
	s.engine.Script(sandbox.Refunds, sandbox.Fault{DropBefore: true})
	if err := s.box.Run(t.Context(), s.w.Config); err != nil {
		t.Fatal(err)
	}
	s.check("unknown")
	if s.requests() != 1 || logged.Len() != 0 {
		t.Errorf("%d requests; logged:\n%s", s.requests(), &logged)
	}
}

// TestLateResponse: the response to a worker that was taken for dead is better than doubt,
// and only what contradicts a decision is for a person.
func TestLateResponse(t *testing.T) {
	for _, test := range []struct {
		name      string
		event     event
		decided   Verdict
		want, log string
		sentAgain bool
	}{
		{"accepted", eventAccepted, "", "accepted", "late response", false},
		{"refused", eventRefused, "", "rejected", "late response", false},
		{"not sent", eventUnsent, "", "pending", "late response", false},
		{"accepted, as decided", eventAccepted, Recorded, "accepted", "accepted", false},
		{"refused, not as decided", eventRefused, Recorded, "accepted", "accepted late response, after a decision", false},
		{"accepted, before it is sent again", eventAccepted, NotRecorded, "accepted", "not recorded late response", false},
		{"accepted, not as decided", eventAccepted, Closed, "rejected", "closed late response, after a decision", false},
		{"accepted, and sent again", eventAccepted, Resubmit, "unknown", "resubmit late response, after a decision", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSystem(t)
			s.enqueue(refund("a", 5))
			c := s.take(1)
			s.age()
			if err := s.recoverer().recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.check("unknown")
			if test.decided != "" {
				s.decide(Unknown, test.decided)
			}
			if test.sentAgain {
				s.attempt(1, sandbox.Fault{DropBefore: true})
			}
			if err := s.w.recordOnce(t.Context(), c, outcome{event: test.event}); err != nil {
				t.Fatal(err)
			}
			s.check(test.want)
			s.checkLog(test.log)
		})
	}
}

// TestOutcomes: what becomes of a refund, and what of that is a decision. A worker that got
// no acknowledgement of its commit writes the outcome down again: that is no late response.
func TestOutcomes(t *testing.T) {
	for _, test := range []struct {
		event     event
		resubmit  bool
		want, log string
	}{
		{eventAccepted, true, "accepted", ""},
		{eventRefused, true, "rejected", ""},
		{eventUnsent, true, "pending", ""},
		{eventDoubted, true, "pending", "resubmit"},
		{eventDoubted, false, "unknown", ""},
		{eventConflict, true, "unknown", ""}, // the next attempt would settle nothing
	} {
		s := newSystem(t)
		s.w.Resubmit = test.resubmit
		s.enqueue(refund("a", 5))
		c := s.take(1)
		for range 2 {
			if err := s.w.recordOnce(t.Context(), c, outcome{event: test.event}); err != nil {
				t.Fatal(err)
			}
		}
		s.check(test.want)
		s.checkLog(test.log)
	}
}

// TestUnwritable: while the database takes nothing, an outcome is kept and nothing else is
// sent, and of a report nothing is made, or all that one transaction holds.
func TestUnwritable(t *testing.T) {
	for name, statements := range map[string][2]string{
		"attempt to write a readonly database": {`PRAGMA query_only = ON`, `PRAGMA query_only = OFF`},
		"database or disk is full":             {`PRAGMA max_page_count = 1`, `PRAGMA max_page_count = 100000`}, // no more than there are
	} {
		s := newSystem(t)
		s.unknowns("a", "b")
		plan := s.compare(Report{Until: time.Now(), Rows: []ReportRow{row(1, "acct", "a", 5, "EUR")}})
		s.enqueue(refund("c", 5), refund("d", 5))
		c := s.take(3)
		s.set(statements[0])
		long := strings.Repeat("x", 1_000_000)
		if n, err := plan.Apply(t.Context(), "ann", long); err == nil || n != 0 || strings.Count(err.Error(), "row ") != 2 {
			t.Errorf("%d, %v", n, err)
		}
		said := new(bytes.Buffer)
		s.w.Log = slog.New(slog.NewTextHandler(said, nil))
		recorded := make(chan bool)
		go func() {
			s.w.record(t.Context(), c, outcome{event: eventAccepted, response: response{message: long}})
			close(recorded)
		}()
		for s.w.unrecorded.Load() == 0 {
		}
		s.w.Work(t.Context(), &river.Job[submitArgs]{Args: submitArgs{4}})
		s.check("unknown unknown sending pending")
		s.set(statements[1])
		<-recorded
		if !strings.Contains(said.String(), name) || !strings.Contains(said.String(), "going on") {
			t.Error(said)
		}
		s.apply(plan)
		s.check("accepted absent accepted pending")
		if n := s.requests(); n != 0 {
			t.Errorf("%d requests", n)
		}
	}
}

// TestReadmeTransitions: the README has the whole state machine.
func TestReadmeTransitions(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range transitions {
		to := string(tr.to)
		if tr.inDoubt != tr.to {
			to += " (" + string(tr.inDoubt) + ")"
		}
		for _, from := range tr.from {
			if line := fmt.Sprintf("| %s | %s | %s |", from, tr.event, to); !strings.Contains(string(readme), line) {
				t.Errorf("the README does not have\n%s", line)
			}
		}
	}
	if n := strings.Count(string(readme), "\n| "+string(Unknown)+" | "); n < 8 {
		t.Errorf("the README has %d lines about unknown", n)
	}
}
