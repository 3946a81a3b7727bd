package main

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// TestKilledOnTheWire: a worker that is killed between sending and recording
// leaves a refund whose outcome is unknown, and that nobody sends again by itself.
func TestKilledOnTheWire(t *testing.T) {
	s := newSystem(t)
	s.enqueue(one)
	s.engine.Script(sandbox.Refunds, sandbox.Fault{HeaderDelay: time.Hour})
	cmd, wait := s.start()
	program.WaitFor(t, func() bool { return len(s.engine.Refunds()) == 1 })
	s.kill(cmd, wait)
	if got := s.states(); got != sending {
		t.Fatalf("killed: %s, want the marker", got)
	}
	s.must(0, "work", "-drain")
	if s.states() != unknown || s.requests() != 1 {
		t.Errorf("after a restart: %s, %d requests", s.states(), s.requests())
	}
	if got := s.must(exitAttention, "resolve"); !strings.Contains(got.Stdout, "10150 USD") || !strings.Contains(got.Stdout, "the worker ended") {
		t.Errorf("%+v", got)
	}
	s.must(0, "resolve", "-accepted", "-by", "ann", "-note", "seen in the portal", "1")
	s.must(0, "work", "-drain")
	if s.states() != accepted || s.requests() != 1 || s.decisions() != "1 ann: accepted (seen in the portal)" {
		t.Errorf("decided: %s, %d requests, decisions %s", s.states(), s.requests(), s.decisions())
	}
}

// TestKilledAgain: a refund that was absent, and that a worker is killed with when it is
// sent again, is unknown, also when the service then refuses it.
func TestKilledAgain(t *testing.T) {
	s := newSystem(t)
	s.doubtful(one)
	s.set(`UPDATE outbox_refund SET state = 'absent', doubtful = 1`)
	s.engine.Script(sandbox.Refunds, sandbox.Fault{HeaderDelay: time.Hour}, sandbox.Fault{Status: 409})
	s.must(0, "resolve", "-state", "absent", "-not-recorded", "1")
	cmd, wait := s.start()
	program.WaitFor(t, func() bool { return len(s.engine.Refunds()) == 1 })
	s.kill(cmd, wait)
	for range 2 {
		s.must(0, "work", "-drain")
		s.age()
		if s.states() != unknown {
			t.Fatal(s.states())
		}
		s.must(0, "resolve", "-resubmit", "1")
	}
	if s.requests() != 2 {
		t.Errorf("%d requests", s.requests())
	}
}

// TestKilledBeforeTheWire: refunds that a killed worker had fetched, and not begun,
// are sent by the next one.
func TestKilledBeforeTheWire(t *testing.T) {
	s := newSystem(t)
	s.enqueue(`{"refund_id":"a"}`, `{"refund_id":"b"}`, `{"refund_id":"c"}`)
	cmd, wait := s.start("-rate", "0.001") // the second waits for the limiter
	program.WaitFor(t, func() bool { return strings.Count(s.states(), accepted) == 1 && s.jobs(rivertype.JobStateRunning) >= 2 })
	s.kill(cmd, wait)
	s.must(0, "work", "-drain")
	if s.states() != "accepted accepted accepted" || s.requests() != 3 {
		t.Errorf("%s, %d requests", s.states(), s.requests())
	}
}

// TestJobsTooMany: the refund's state decides, so that jobs too many, as of a
// completion that River did not see, send nothing.
func TestJobsTooMany(t *testing.T) {
	s := newSystem(t)
	s.enqueue(one)
	again := func() {
		for range 3 {
			s.set(`INSERT INTO river_job (args, kind, max_attempts, queue, state) VALUES (json('{"row":1}'), 'outbox_submit_refund', 100, $1, 'available')`, refundoutbox.Queue)
		}
	}
	again()
	cmd, wait := s.start()
	program.WaitFor(t, func() bool { return s.states() == accepted })
	again()
	program.WaitFor(t, func() bool { return s.jobs(rivertype.JobStateCompleted) >= 7 })
	s.kill(cmd, wait)
	if s.requests() != 1 {
		t.Errorf("%d requests", s.requests())
	}
}

// TestWorkersOfOneFile: a worker of a file of which another one lives leaves the other's
// marker alone, and sends nothing that the other sends.
func TestWorkersOfOneFile(t *testing.T) {
	s := newSystem(t)
	var records []string
	for n := range 100 {
		records = append(records, fmt.Sprintf(`{"refund_id":"rf_%d"}`, n))
	}
	s.enqueue(records...)
	s.engine.Script(sandbox.Refunds, sandbox.Fault{HeaderDelay: 2 * time.Second})
	cmd, wait := s.start()
	program.WaitFor(t, func() bool { return s.requests() > 0 })
	s.must(0, "work", "-drain")
	s.kill(cmd, wait)
	if got := s.states(); strings.Count(got, accepted) != len(records) || s.requests() != len(records) || s.decisions() != "" {
		t.Errorf("%s, %d requests, decisions %s", got, s.requests(), s.decisions())
	}
}

// TestStopped: a stop lets the request on the wire have its response, and begins no
// other.
func TestStopped(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be sent SIGTERM on windows")
	}
	s := newSystem(t)
	s.enqueue(one, `{"refund_id":"rf_2"}`)
	s.engine.Script(sandbox.Refunds, sandbox.Fault{HeaderDelay: 700 * time.Millisecond})
	cmd, wait := s.start("-concurrency", "1")
	program.WaitFor(t, func() bool { return len(s.engine.Refunds()) == 1 })
	cmd.Process.Signal(syscall.SIGTERM)
	got := wait()
	if got.Code != 0 || !strings.Contains(got.Stderr, "stopping") || s.states() != "accepted pending" {
		t.Errorf("%s; %+v", s.states(), got)
	}
	s.must(0, "work", "-drain")
	if s.states() != "accepted accepted" || s.requests() != 2 {
		t.Errorf("%s, %d requests", s.states(), s.requests())
	}
}
