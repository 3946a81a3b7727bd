package main

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/carddata/carddata-go/examples/internal/program"
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
	cmd.Process.Kill()
	wait()
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

// TestKilledBeforeTheWire: refunds that a killed worker had fetched, and not begun,
// are sent by the next one.
func TestKilledBeforeTheWire(t *testing.T) {
	s := newSystem(t)
	s.enqueue(`{"refund_id":"a"}`, `{"refund_id":"b"}`, `{"refund_id":"c"}`)
	cmd, wait := s.start("-rate", "0.001") // the second waits for the limiter
	program.WaitFor(t, func() bool { return strings.Count(s.states(), accepted) == 1 && s.jobs(rivertype.JobStateRunning) >= 2 })
	cmd.Process.Kill()
	wait()
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
		err := s.db.transact(t.Context(), func(tx transaction) error { return tx.insertJobs(t.Context(), jobsFor(0, 1, 1, 1)) })
		if err != nil {
			t.Fatal(err)
		}
	}
	again()
	cmd, wait := s.start()
	program.WaitFor(t, func() bool { return s.states() == accepted })
	again()
	program.WaitFor(t, func() bool { return s.jobs(rivertype.JobStateCompleted) >= 4 })
	cmd.Process.Kill()
	wait()
	if s.requests() != 1 {
		t.Errorf("%d requests", s.requests())
	}
}

// TestOneWorkerPerFile: SQLite takes one worker at a time, also after a kill.
func TestOneWorkerPerFile(t *testing.T) {
	s := newSystem(t)
	s.enqueue(one)
	cmd, wait := s.start()
	program.WaitFor(t, func() bool { return s.states() == accepted })
	got := s.must(2, "work", "-drain")
	if !strings.Contains(got.Stderr, "another worker works ") {
		t.Errorf("%+v", got)
	}
	cmd.Process.Kill()
	wait()
	s.must(0, "work", "-drain")
}

// TestStopped: a stop lets the request on the wire have its answer, and begins no
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
