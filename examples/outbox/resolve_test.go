package main

import (
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
)

// doubtful enqueues records, and makes their outcomes unknown.
func (s *system) doubtful(records ...string) {
	s.t.Helper()
	s.enqueue(records...)
	s.set(`UPDATE outbox_refund SET state = 'unknown', attempts = attempts + 1, reason = 'timeout', sent_at = '2026-01-01T00:00:00.000Z' WHERE attempts = 0`)
}

// TestExpect: many are decided about at once only as they were looked at.
func TestExpect(t *testing.T) {
	s := newSystem(t)
	s.doubtful(`{"refund_id":"a"}`, `{"refund_id":"b"}`)
	_, listed, _ := strings.Cut(s.must(exitAttention, "resolve").Stdout, "-expect ")
	looked, _, _ := strings.Cut(listed, "\n")
	s.doubtful(`{"refund_id":"c"}`)
	s.set(`UPDATE outbox_refund SET state = 'accepted' WHERE refund_id = 'a'`) // as many as before, and others
	for _, by := range [][]string{nil, {"-reason", "timeout"}} {
		if got := s.must(1, "resolve", append(by, "-accepted", "-expect", looked)...); !strings.Contains(got.Stderr, "the list has changed") {
			t.Errorf("%+v", got)
		}
	}
	if s.decisions() != "" {
		t.Error(s.decisions())
	}
	s.must(0, "resolve", "-accepted", "-expect", s.token(refundoutbox.Filter{State: refundoutbox.Unknown}))
}

// TestTooEarly: nothing is sent again while the request can still leave a worker that
// was frozen.
func TestTooEarly(t *testing.T) {
	s := newSystem(t)
	s.doubtful(one)
	s.set(`UPDATE outbox_refund SET sent_at = $1`, time.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
	for _, decision := range []string{"-not-recorded", "-resubmit", "-close"} {
		if got := s.must(1, "resolve", decision, "1"); !strings.Contains(got.Stderr, "can still leave until 2") || s.states() != unknown {
			t.Errorf("%+v", got)
		}
	}
	s.must(0, "resolve", "-accepted", "1")
}

// TestStates: which decisions there are about which refunds.
func TestStates(t *testing.T) {
	s := newSystem(t)
	s.doubtful(one)
	s.set(`UPDATE outbox_refund SET state = 'absent', request_id = 'req_7'`)
	s.must(2, "resolve", "-state", "accepted")
	s.must(2, "resolve", "-state", "rejected", "-accepted", "1")
	if got := s.must(exitAttention, "resolve", "-state", "absent"); !strings.Contains(got.Stdout, "req_7") {
		t.Errorf("%+v", got)
	}
	if got := s.must(exitAttention, "status"); !strings.Contains(got.Stdout, "LOOK: 1 absent") {
		t.Errorf("%+v", got)
	}
	s.must(exitAttention, "resolve", "-close", "1") // is not unknown
	s.must(0, "resolve", "-state", "absent", "-close", "1")
	s.must(0, "resolve", "-state", "rejected", "-resubmit", "1")
	s.must(0, "status")
	if s.states() != pending || s.decisions() != "1 tester: closed (); 1 tester: resubmit ()" {
		t.Error(s.states(), s.decisions())
	}
}

// TestAccounts: one refund_id of two accounts are two refunds.
func TestAccounts(t *testing.T) {
	s := newSystem(t)
	s.doubtful(one)
	s.vars["CARDDATA_ACCOUNT_ID"] = "other"
	s.doubtful(one)
	if got := s.must(exitAttention, "resolve"); !strings.Contains(got.Stdout, " acct ") || !strings.Contains(got.Stdout, " other ") {
		t.Error(got.Stdout)
	}
	s.must(1, "resolve", "-accepted", "-expect", s.token(refundoutbox.Filter{State: refundoutbox.Unknown}), "1") // that is of both
	s.must(exitAttention, "resolve", "-accepted", "1")
	if s.states() != "accepted unknown" {
		t.Error(s.states())
	}
}

// TestSuperseded: what was corrected by a later record is not sent after it.
func TestSuperseded(t *testing.T) {
	s := newSystem(t)
	s.doubtful(`{"refund_id":"a","amount":5}`, `{"refund_id":"b"}`)
	s.set(`UPDATE outbox_refund SET state = 'rejected'`)
	s.doubtful(`{"refund_id":"a","amount":6}`)
	s.set(`UPDATE outbox_refund SET state = 'accepted' WHERE id = 3`)
	s.must(0, "resolve", "-state", "rejected", "-resubmit", "-expect", s.token(refundoutbox.Filter{State: refundoutbox.Rejected}))
	if s.states() != "rejected pending accepted" {
		t.Error(s.states())
	}
	s.must(0, "resolve", "-state", "rejected", "-resubmit", "1")
	if s.states() != "rejected pending accepted" {
		t.Error(s.states())
	}
}

// TestSeen: a response that came after a decision is looked at until somebody says that
// he has.
func TestSeen(t *testing.T) {
	s := newSystem(t)
	s.doubtful(one)
	s.must(0, "resolve", "-close", "1")
	s.must(0, "status")
	s.set(`INSERT INTO outbox_decision (refund, attempt, decided_at, who, what, note) VALUES (1, 1, '', 'w', 'late response, after a decision', '2xx')`)
	if got := s.must(exitAttention, "status"); !strings.Contains(got.Stdout, "LOOK: 1 late responses") {
		t.Errorf("%+v", got)
	}
	s.must(exitAttention, "resolve", "-seen", "2")
	if got := s.must(0, "resolve", "-seen", "1"); !strings.HasPrefix(got.Stdout, "1 refunds: seen") || s.states() != rejected {
		t.Errorf("%s: %+v", s.states(), got)
	}
	s.must(0, "status")
}
