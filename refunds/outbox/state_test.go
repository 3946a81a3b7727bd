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
	for _, again := range []Verdict{Resubmit, NotRecorded} {
		s := newSystem(t)
		s.enqueue(refund("a", 5))
		s.attempt(1, sandbox.Fault{DropAfter: true})
		s.check("unknown")
		s.decide(Unknown, again)
		s.attempt(1, sandbox.Fault{Status: 422})
		s.check("unknown")
		s.decide(Unknown, again)
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
}

// TestConflict: the service may have a refund that it refuses with 409, and sending it
// again by itself would settle nothing.
func TestConflict(t *testing.T) {
	for _, resubmit := range []bool{false, true} {
		s := newSystem(t)
		s.w.Resubmit = resubmit
		s.enqueue(refund("a", 5))
		s.attempt(1, sandbox.Fault{Status: 409})
		s.check("unknown")
		if s.log() != "" {
			t.Errorf("the log says %s", s.log())
		}
		s.decide(Unknown, NotRecorded)
		s.attempt(1, sandbox.Fault{Status: 422})
		s.check("unknown")
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

// late makes a worker write down an outcome that comes after it was taken for dead,
// and somebody decided.
func (s *system) late(o outcome, decide func()) {
	s.t.Helper()
	s.enqueue(refund("a", 5))
	c, err := take(s.t.Context(), s.box, 1, "w")
	if err != nil {
		s.t.Fatal(err)
	}
	err = s.box.transact(s.t.Context(), func(tx session) error { return s.w.doubt(s.t.Context(), tx, c, workerEnded) })
	if err == nil {
		decide()
		err = s.w.recordOnce(s.t.Context(), c, o)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestLateResponse: it is better than doubt, and only what contradicts a decision is
// for a person.
func TestLateResponse(t *testing.T) {
	yes, no, unsent := outcome{event: eventAccepted}, outcome{event: eventRefused}, outcome{event: eventUnsent}
	for _, test := range []struct {
		name      string
		o         outcome
		decided   Verdict
		want, log string
		sentAgain bool
	}{
		{"accepted", yes, "", "accepted", "late response", false},
		{"refused", no, "", "rejected", "late response", false},
		{"not sent", unsent, "", "pending", "late response", false},
		{"accepted, as decided", yes, Recorded, "accepted", "accepted", false},
		{"refused, not as decided", no, Recorded, "accepted", "accepted late response, after a decision", false},
		{"accepted, before it is sent again", yes, NotRecorded, "accepted", "not recorded late response", false},
		{"accepted, not as decided", yes, Closed, "rejected", "closed late response, after a decision", false},
		{"accepted, and sent again", yes, Resubmit, "unknown", "resubmit late response, after a decision", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSystem(t)
			s.late(test.o, func() {
				if test.decided != "" {
					s.decide(Unknown, test.decided)
				}
				if test.sentAgain {
					s.attempt(1, sandbox.Fault{DropBefore: true})
				}
			})
			s.check(test.want)
			if s.log() != test.log {
				t.Errorf("the log says %s, want %s", s.log(), test.log)
			}
		})
	}
}

// TestLostAcknowledgement: a worker that got no acknowledgement of its commit writes the
// outcome down again. Nobody decided, so that it is no matter for a person.
func TestLostAcknowledgement(t *testing.T) {
	for _, o := range []outcome{{event: eventAccepted}, {event: eventRefused}, {event: eventUnsent}, {event: eventDoubted}, {event: eventConflict}} {
		for _, resubmit := range []bool{false, true} {
			s := newSystem(t)
			s.w.Resubmit = resubmit
			s.enqueue(refund("a", 5))
			c, err := take(t.Context(), s.box, 1, "w")
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := s.w.recordOnce(t.Context(), c, o); err != nil {
					t.Fatal(err)
				}
			}
			if strings.Contains(s.log(), "late") {
				t.Errorf("%s: the log says %s", o.event, s.log())
			}
		}
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
		c, err := take(t.Context(), s.box, 3, "w")
		if err != nil {
			t.Fatal(err)
		}
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
