package outbox

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

// TestRefusedAfterDoubt: the refusal of a refund that was sent again says nothing
// about the time before, which the service may have recorded, unless somebody says that it has not.
func TestRefusedAfterDoubt(t *testing.T) {
	s := newSystem(t)
	s.enqueue(refund("a", 5))
	s.attempt(1, sandbox.Fault{Drop: true, Process: true})
	s.check("unknown")
	s.decide(Unknown, Resubmit)
	s.attempt(1, sandbox.Fault{Status: 422})
	s.check("unknown")
	s.decide(Unknown, Resubmit)
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
	s.decide(Unknown, NotRecorded)
	s.attempt(1, sandbox.Fault{Status: 422})
	s.check("rejected")
}

// TestClientResubmit: a client that repeats refunds by itself sends each once here, and
// what is unknown stays so. Of River, only warnings are logged.
func TestClientResubmit(t *testing.T) {
	s := newSystem(t)
	s.w.Client = s.client(refunds.WithResubmit(), refunds.WithMaxRetries(5))
	var logged bytes.Buffer
	s.w.Log = slog.New(slog.NewTextHandler(&logged, nil))
	s.enqueue(refund("a", 5))
	s.fake.Script(sandbox.Fault{Drop: true})
	s.drain()
	s.check("unknown")
	if s.requests() != 1 || logged.Len() != 0 {
		t.Errorf("%d requests; logged:\n%s", s.requests(), &logged)
	}
}

// TestLateResponse: the response to a worker that was taken for dead is better than doubt,
// but not than a decision.
func TestLateResponse(t *testing.T) {
	for _, test := range []struct {
		event   event
		decided Verdict
		want    string
	}{
		{eventAccepted, "", "accepted"},
		{eventRefused, "", "rejected"},
		{eventUnsent, "", "pending"},
		{eventRefused, Recorded, "accepted"},
		{eventAccepted, Closed, "rejected"},
		{eventAccepted, Resubmit, "pending"},
	} {
		s := newSystem(t)
		s.enqueue(refund("a", 5))
		c := s.take(1)
		s.age()
		if err := s.w.bury(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.check("unknown")
		if test.decided != "" {
			s.decide(Unknown, test.decided)
		}
		if err := s.w.recordOnce(t.Context(), c, outcome{event: test.event}); err != nil {
			t.Fatal(err)
		}
		s.check(test.want)
	}
}

// TestOutcomes: what becomes of a refund, and what of that is a decision. A worker that got
// no acknowledgement of its commit writes the outcome down again, which changes nothing.
func TestOutcomes(t *testing.T) {
	for _, test := range []struct {
		outcome   outcome
		resubmit  bool
		want, log string
	}{
		{outcome{event: eventAccepted}, true, "accepted", ""},
		{outcome{event: eventRefused}, true, "rejected", ""},
		{outcome{event: eventUnsent}, true, "pending", ""},
		{outcome{event: eventDoubted}, true, "pending", "resubmit"},
		{outcome{event: eventDoubted}, false, "unknown", ""},
		{outcome{event: eventDoubted, final: true}, true, "unknown", ""},
	} {
		s := newSystem(t)
		s.w.Resubmit = test.resubmit
		s.enqueue(refund("a", 5))
		c := s.take(1)
		for range 2 {
			if err := s.w.recordOnce(t.Context(), c, test.outcome); err != nil {
				t.Fatal(err)
			}
		}
		s.check(test.want)
		s.checkLog(test.log)
	}
}

// TestUnwritable: while the database takes nothing, an outcome is kept.
func TestUnwritable(t *testing.T) {
	s := newSystem(t)
	s.enqueue(refund("a", 5))
	c := s.take(1)
	s.set(`PRAGMA query_only = ON`)
	told, say := io.Pipe()
	s.w.Log = slog.New(slog.NewTextHandler(say, nil))
	recorded := make(chan bool)
	go func() {
		s.w.record(t.Context(), c, outcome{event: eventAccepted})
		close(recorded)
	}()
	line, err := bufio.NewReader(told).ReadString('\n')
	if err != nil || !strings.Contains(line, "attempt to write a readonly database") {
		t.Errorf("%q, %v", line, err)
	}
	s.check("sending")
	s.set(`PRAGMA query_only = OFF`)
	<-recorded
	s.check("accepted")
}
