package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
	"github.com/carddata/carddata-go/internal/sandbox"
)

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
	const want = "accepted rejected unknown unknown accepted unknown unknown accepted accepted"
	if s.states() != want || s.requests() != 11 {
		t.Errorf("%s, want %s; %d requests\n%s", s.states(), want, s.requests(), got.Stderr)
	}
	if n := s.jobs(rivertype.JobStateCancelled); n != 1 {
		t.Errorf("%d jobs canceled, want one for the rejected refund", n)
	}
	status := s.must(exitAttention, "status")
	status.CheckMasked(t, "canary")
	for _, text := range []string{"422 amount_too_high", "409 Conflict", "no response", "500 Internal Server Error", "unknown   4"} {
		if !strings.Contains(status.Stdout, text) {
			t.Errorf("no %q in\n%s", text, status.Stdout)
		}
	}
	counts := s.must(exitAttention, "status", "-json").Stdout
	for _, text := range []string{`"enqueued":9,"accepted":4,"rejected":1,"unknown":4,"absent":0,"pending":0,"sending":0,`, `"last_sent":"20`, `"worker_lives":false`} {
		if !strings.Contains(counts, text) {
			t.Errorf("no %s in %s", text, counts)
		}
	}
	// What the service objected to was corrected there.
	s.must(exitAttention, "resolve", "-state", "rejected", "-resubmit", "-reason", "422 amount_too_high",
		"-expect", s.token(refundoutbox.Filter{State: refundoutbox.Rejected, Reason: "422 amount_too_high"}))
	s.must(0, "work", "-drain")
	if !strings.HasPrefix(s.states(), "accepted accepted unknown unknown") {
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
	program.WaitFor(t, func() bool { return strings.Contains(s.must(0, "status").Stdout, "no response  1") })
	s.kill(cmd, wait)
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
		s.decisions() != "1 configuration: resubmit (-resubmit-unknown after no response)" {
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
	program.WaitFor(t, func() bool { return s.states() == "unknown pending" && s.jobs(rivertype.JobStateCompleted) == 2 })
	s.age()
	s.must(0, "resolve", "-not-recorded", "-expect", s.token(refundoutbox.Filter{State: refundoutbox.Unknown}))
	program.WaitFor(t, func() bool { return s.states() == "accepted accepted" })
	s.kill(cmd, wait)
	var order []string
	for _, r := range s.engine.Refunds() {
		order = append(order, string(r.Body))
	}
	if strings.Join(order, " ") != `{"refund_id":"a"} {"refund_id":"a","svc_codes":{"svc_refund_status":"done"}}` {
		t.Error(order)
	}
}

// TestLateResponse: a worker that was taken for dead brings certainty after all.
func TestLateResponse(t *testing.T) {
	s := newSystem(t)
	s.enqueue(one)
	s.engine.Script(sandbox.Refunds, sandbox.Fault{HeaderDelay: 500 * time.Millisecond})
	cmd, wait := s.start()
	program.WaitFor(t, func() bool { return len(s.engine.Refunds()) == 1 })
	if _, err := s.db.Exec(context.Background(), `UPDATE outbox_refund SET state = 'unknown'`); err != nil {
		t.Fatal(err)
	}
	program.WaitFor(t, func() bool { return s.states() == accepted })
	s.kill(cmd, wait)
	if got := s.decisions(); !strings.Contains(got, ": late response (2xx") || s.requests() != 1 {
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
