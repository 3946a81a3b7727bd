package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// enqueue enqueues records, one line of JSON each.
func (s *system) enqueue(records ...string) {
	s.t.Helper()
	s.must(0, "enqueue", "-in", write(s.t, "in.jsonl", strings.Join(records, "\n")))
}

// states returns the states of the refunds, in order.
func (s *system) states() string {
	s.t.Helper()
	var states []string
	err := s.db.query(s.t.Context(), func(scan scanner) error {
		var state string
		err := scan(&state)
		states = append(states, state)
		return err
	}, `SELECT state FROM outbox_refund ORDER BY id`)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Join(states, " ")
}

// decisions returns who decided what, in order.
func (s *system) decisions() string {
	s.t.Helper()
	var all []string
	err := s.db.query(s.t.Context(), func(scan scanner) error {
		var row int64
		var who, what, note string
		err := scan(&row, &who, &what, &note)
		all = append(all, fmt.Sprintf("%d %s: %s (%s)", row, who, what, note))
		return err
	}, `SELECT refund, who, what, note FROM outbox_decision ORDER BY id`)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Join(all, "; ")
}

// start starts a worker.
func (s *system) start(args ...string) (*exec.Cmd, func() program.Result) {
	s.t.Helper()
	cmd := s.command("work", args...)
	return cmd, program.Start(s.t, cmd)
}

func waitFor(t testing.TB, condition func() bool) {
	t.Helper()
	for !condition() {
		select {
		case <-t.Context().Done():
			t.Fatal("the test ended first")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *system) requests() int { return s.engine.RequestCount(sandbox.Refunds) }

const one = `{"refund_id":"rf_1","amount":10150,"currency":"USD"}`

// TestKilledOnTheWire: a worker that is killed between sending and recording
// leaves a refund whose outcome is unknown, and that nobody sends again by itself.
func TestKilledOnTheWire(t *testing.T) {
	s := newSystem(t)
	s.enqueue(one)
	s.engine.Script(sandbox.Refunds, sandbox.Fault{HeaderDelay: time.Hour})
	cmd, wait := s.start()
	waitFor(t, func() bool { return len(s.engine.Refunds()) == 1 })
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
	waitFor(t, func() bool { return strings.Count(s.states(), accepted) == 1 && s.jobs(rivertype.JobStateRunning) >= 2 })
	cmd.Process.Kill()
	wait()
	s.must(0, "work", "-drain")
	if s.states() != "accepted accepted accepted" || s.requests() != 3 {
		t.Errorf("%s, %d requests", s.states(), s.requests())
	}
}

// jobs counts River's jobs of a state.
func (s *system) jobs(state rivertype.JobState) int {
	s.t.Helper()
	q, err := s.db.queue(&river.Config{})
	if err != nil {
		s.t.Fatal(err)
	}
	list, err := q.JobList(s.t.Context(), river.NewJobListParams().States(state).First(1000))
	if err != nil {
		s.t.Fatal(err)
	}
	return len(list.Jobs)
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
	waitFor(t, func() bool { return s.states() == accepted })
	again()
	waitFor(t, func() bool { return s.jobs(rivertype.JobStateCompleted) >= 4 })
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
	waitFor(t, func() bool { return s.states() == accepted })
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
	waitFor(t, func() bool { return len(s.engine.Refunds()) == 1 })
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

// TestOutcomes: what becomes of a refund, by what the service does.
func TestOutcomes(t *testing.T) {
	s := newSystem(t)
	s.engine.Script(sandbox.Refunds,
		sandbox.Fault{Status: 201},
		sandbox.Fault{Status: 422, Body: `{"error":{"code":"amount_too_high","message":"canary 4111111111111111"}}`},
		sandbox.Fault{Status: 409, Body: `{"message":"canary"}`},
		sandbox.Fault{DropBefore: true},
		sandbox.Fault{Status: 200}, // a success in between: the breaker counts failures in a row
		sandbox.Fault{DropAfter: true},
		sandbox.Fault{Status: 500, Body: "canary"},
		sandbox.Fault{Status: 429, RetryAfter: time.Second},
		sandbox.Fault{Status: 200},
		sandbox.Fault{Status: 401, Body: `{"error":{"code":"4111111111111111","message":"canary"}}`},
	)
	for i := range 9 {
		s.enqueue(fmt.Sprintf(`{"refund_id":"rf_%d","additional_data":{"description":"canary","metadata":{"canary":"canary"}}}`, i))
	}
	got := s.must(0, "work", "-drain", "-concurrency", "1")
	got.CheckMasked(t, "canary")
	const want = "accepted rejected rejected unknown accepted unknown unknown accepted accepted"
	if s.states() != want || s.requests() != 11 {
		t.Errorf("%s, want %s; %d requests\n%s", s.states(), want, s.requests(), got.Stderr)
	}
	if n := s.jobs(rivertype.JobStateCancelled); n != 2 {
		t.Errorf("%d jobs canceled, want one for each rejected refund", n)
	}
	status := s.must(exitAttention, "status")
	status.CheckMasked(t, "canary")
	for _, text := range []string{"422 amount_too_high", "409 Conflict", "no answer", "500 Internal Server Error", "unknown    3"} {
		if !strings.Contains(status.Stdout, text) {
			t.Errorf("no %q in\n%s", text, status.Stdout)
		}
	}
	if counts := s.must(exitAttention, "status", "-json").Stdout; counts != `{"enqueued":9,"accepted":4,"rejected":2,"unknown":3,"pending":0,"sending":0,"oldest_pending_seconds":0,"decisions":0}`+"\n" {
		t.Error(counts)
	}
	// What the service objected to was corrected there.
	s.must(exitAttention, "resolve", "-rejected", "-resubmit", "-reason", "422 amount_too_high")
	s.must(0, "work", "-drain")
	if !strings.HasPrefix(s.states(), "accepted accepted rejected unknown") {
		t.Error(s.states())
	}
}

// TestServiceAway: what was not sent stays pending, and is sent when the service is
// there.
func TestServiceAway(t *testing.T) {
	s := newSystem(t)
	s.enqueue(one)
	url := s.vars[settings.URL]
	s.vars[settings.URL] = "http://127.0.0.1:1" // where nobody listens
	cmd, wait := s.start()
	waitFor(t, func() bool { return strings.Contains(s.must(0, "status").Stdout, "no answer  1") })
	cmd.Process.Kill()
	wait()
	if s.states() != pending {
		t.Error(s.states())
	}
	s.vars[settings.URL] = url
	s.must(0, "work", "-drain")
	if s.states() != accepted || s.decisions() != "" {
		t.Errorf("%s, decisions %s", s.states(), s.decisions())
	}
}

// TestResubmitUnknown: the configuration's word is logged before each resubmission.
func TestResubmitUnknown(t *testing.T) {
	s := newSystem(t)
	s.enqueue(one)
	s.engine.Script(sandbox.Refunds, sandbox.Fault{DropAfter: true})
	s.must(0, "work", "-drain", "-resubmit-unknown")
	if s.states() != accepted || len(s.engine.Refunds()) != 2 ||
		s.decisions() != "1 configuration: resubmit (-resubmit-unknown after no answer)" {
		t.Errorf("%s, recorded %d times, decisions %s", s.states(), len(s.engine.Refunds()), s.decisions())
	}
}

// TestUpdateWaits: an update does not pass a record whose outcome is unknown, and
// goes on by itself after the decision.
func TestUpdateWaits(t *testing.T) {
	s := newSystem(t)
	s.enqueue(`{"refund_id":"a"}`, `{"refund_id":"a","svc_codes":{"svc_refund_status":"done"}}`)
	s.engine.Script(sandbox.Refunds, sandbox.Fault{DropBefore: true})
	cmd, wait := s.start()
	waitFor(t, func() bool { return s.states() == "unknown pending" && s.jobs(rivertype.JobStateCompleted) == 2 })
	s.must(0, "resolve", "-not-recorded", "-all")
	waitFor(t, func() bool { return s.states() == "accepted accepted" })
	cmd.Process.Kill()
	wait()
	var order []string
	for _, r := range s.engine.Refunds() {
		order = append(order, string(r.Body))
	}
	if strings.Join(order, " ") != `{"refund_id":"a"} {"refund_id":"a","svc_codes":{"svc_refund_status":"done"}}` {
		t.Error(order)
	}
}

// TestLateAnswer: a worker that was taken for dead brings certainty after all.
func TestLateAnswer(t *testing.T) {
	s := newSystem(t)
	s.enqueue(one)
	s.engine.Script(sandbox.Refunds, sandbox.Fault{HeaderDelay: 500 * time.Millisecond})
	cmd, wait := s.start()
	waitFor(t, func() bool { return len(s.engine.Refunds()) == 1 })
	if _, err := s.db.exec(context.Background(), `UPDATE outbox_refund SET state = 'unknown'`); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return s.states() == accepted })
	cmd.Process.Kill()
	wait()
	if got := s.decisions(); !strings.Contains(got, ": late answer (accepted") || s.requests() != 1 {
		t.Errorf("decisions %s, %d requests", got, s.requests())
	}
}

// TestFileMode: refunds are their owner's to read.
func TestFileMode(t *testing.T) {
	s := newSystem(t)
	s.enqueue(one)
	s.must(0, "work", "-drain")
	found, err := filepath.Glob(s.at[1] + "*")
	if err != nil || len(found) < 2 {
		t.Fatal(found, err)
	}
	for _, path := range found {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", filepath.Base(path), info.Mode(), err)
		}
	}
}
