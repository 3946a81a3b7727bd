package refundoutbox

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// TestRefusedAfterDoubt: the refusal of a refund that was sent again says nothing
// about the time before, which the service may have recorded.
func TestRefusedAfterDoubt(t *testing.T) {
	for _, status := range []int{400, 409, 422} {
		for _, again := range []Event{DecideResubmit, DecideNotRecorded} {
			s := newSystem(t)
			s.enqueue(refund("a", 5))
			s.attempt(1, sandbox.Fault{DropAfter: true})
			s.check("unknown")
			s.decide(Unknown, again)
			s.attempt(1, sandbox.Fault{Status: status})
			s.check("unknown")
			if got := s.column(`SELECT reason FROM outbox_refund`); got != fmt.Sprint(status, " scripted; an earlier attempt is in doubt") {
				t.Errorf("the reason is %s", got)
			}
			// Nor is it forgotten after that.
			s.decide(Unknown, again)
			s.attempt(1, sandbox.Fault{Status: 401}) // nothing was recorded
			s.check("pending")
			s.attempt(1, sandbox.Fault{Status: status})
			s.check("unknown")
			// An update with another amount is not taken for a correction.
			err := s.db.Transact(t.Context(), func(tx Tx) error {
				placed, err := Enqueue(t.Context(), tx, "acct", refundsOf(refund("a", 6)), false)
				if err == nil && (placed[0].Row != 0 || !placed[0].Changed) {
					err = fmt.Errorf("%+v", placed)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
			s.decide(Unknown, again)
			s.attempt(1, sandbox.Fault{})
			s.check("accepted")
		}
	}
}

// TestRefused: a refusal of the first attempt is the refund's.
func TestRefused(t *testing.T) {
	s := newSystem(t)
	s.enqueue(refund("a", 5))
	s.attempt(1, sandbox.Fault{Status: 429})
	s.attempt(1, sandbox.Fault{Status: 422})
	s.check("rejected")
	s.decide(Rejected, DecideResubmit)
	s.attempt(1, sandbox.Fault{Status: 422})
	s.check("rejected")
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
		s.decide(Unknown, DecideNotRecorded)
		s.attempt(1, sandbox.Fault{Status: 422})
		s.check("unknown")
	}
}

// TestClosed: a refund that nobody wants to be sent.
func TestClosed(t *testing.T) {
	s := newSystem(t)
	s.enqueue(refund("a", 5), refund("b", 5))
	s.attempt(1, sandbox.Fault{DropBefore: true})
	s.decide(Unknown, DecideClosed)
	s.decide(Pending, DecideClosed)
	s.check("rejected rejected")
}

// late makes a worker write down an outcome that comes after it was taken for dead,
// and somebody decided.
func (s *system) late(o outcome, decide func()) {
	s.t.Helper()
	s.enqueue(refund("a", 5))
	c, err := take(s.t.Context(), s.db, 1, "w")
	if err != nil {
		s.t.Fatal(err)
	}
	err = s.db.Transact(s.t.Context(), func(tx Tx) error { return s.w.doubt(s.t.Context(), tx, c, workerEnded) })
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
		name       string
		o          outcome
		decided    Event
		want, log  string
		sentAgain  bool
		fromReport bool
	}{
		{"accepted", yes, "", "accepted", "late response", false, false},
		{"refused", no, "", "rejected", "late response", false, false},
		{"not sent", unsent, "", "pending", "late response", false, false},
		{"accepted, as decided", yes, DecideAccepted, "accepted", "accepted", false, false},
		{"refused, not as decided", no, DecideAccepted, "accepted", "accepted late response, after a decision", false, false},
		{"accepted, before it is sent again", yes, DecideNotRecorded, "accepted", "not recorded late response", false, false},
		{"accepted, not as decided", yes, DecideClosed, "rejected", "closed late response, after a decision", false, false},
		{"accepted, and sent again", yes, DecideResubmit, "unknown", "resubmit late response, after a decision", true, false},
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

// TestLostAcknowledgement: a worker whose commit was not acknowledged writes the
// outcome down again. Nobody decided, so that it is no matter for a person.
func TestLostAcknowledgement(t *testing.T) {
	for _, o := range []outcome{{event: eventAccepted}, {event: eventRefused}, {event: eventUnsent}, {event: eventDoubted}, {event: eventConflict}} {
		for _, resubmit := range []bool{false, true} {
			s := newSystem(t)
			s.w.Resubmit = resubmit
			s.enqueue(refund("a", 5))
			c, err := take(t.Context(), s.db, 1, "w")
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
		plan := s.compare(&Report{ID: "1", Until: time.Now(), Rows: []ReportRow{row(1, "acct", "a", 5, "EUR")}})
		s.enqueue(refund("c", 5), refund("d", 5))
		c, err := take(t.Context(), s.db, 3, "w")
		if err != nil {
			t.Fatal(err)
		}
		s.set(statements[0])
		long := strings.Repeat("x", 1_000_000)
		if n, err := plan.Apply(t.Context(), s.db, Decision{Who: "ann", Note: long}); err == nil || n != 0 {
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
		if n := s.engine.RequestCount(sandbox.Refunds); n != 0 {
			t.Errorf("%d requests", n)
		}
	}
}

// TestReadmeTransitions: the README has the whole state machine.
func TestReadmeTransitions(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
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
