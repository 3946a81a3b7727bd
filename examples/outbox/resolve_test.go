package main

import (
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
)

// doubtful enqueues records, and makes their outcomes unknown.
func (s *system) doubtful(records ...string) {
	s.t.Helper()
	s.enqueue(records...)
	s.set(`UPDATE outbox_refund SET state = 'unknown', attempts = attempts + 1, reason = 'timeout', sent_at = '2026-01-01T00:00:00.000Z' WHERE attempts = 0`)
}

func (s *system) set(statement string, args ...any) {
	s.t.Helper()
	if _, err := s.db.exec(s.t.Context(), statement, args...); err != nil {
		s.t.Fatal(err)
	}
}

// TestExpect: many are decided about at once only as they were looked at.
func TestExpect(t *testing.T) {
	s := newSystem(t)
	s.doubtful(`{"refund_id":"a"}`, `{"refund_id":"b"}`)
	_, listed, _ := strings.Cut(s.must(exitAttention, "resolve", "-limit", "1").Stdout, "-expect ")
	looked, _, _ := strings.Cut(listed, "\n")
	s.doubtful(`{"refund_id":"c"}`)
	s.set(`UPDATE outbox_refund SET state = 'accepted' WHERE refund_id = 'a'`) // as many as before, and others
	for _, by := range [][]string{{"-all"}, {"-reason", "timeout"}} {
		if got := s.must(1, "resolve", append(by, "-accepted", "-expect", looked)...); !strings.Contains(got.Stderr, "the list has changed") {
			t.Errorf("%+v", got)
		}
	}
	if s.decisions() != "" {
		t.Error(s.decisions())
	}
	s.must(0, "resolve", "-all", "-accepted", "-expect", s.token(filter{state: unknown}))
}

// TestTooEarly: nothing is sent again while the request can still leave a worker
// that was frozen.
func TestTooEarly(t *testing.T) {
	s := newSystem(t)
	s.doubtful(one)
	s.set(`UPDATE outbox_refund SET sent_at = $1`, timeText(time.Now()))
	for _, decision := range []string{"-not-recorded", "-resubmit"} {
		if got := s.must(1, "resolve", decision, "1"); !strings.Contains(got.Stderr, "can still leave until 2") || s.states() != unknown {
			t.Errorf("%+v", got)
		}
	}
	s.must(0, "resolve", "-accepted", "1")
}

// TestFrozenWorker: neither does the configuration's word.
func TestFrozenWorker(t *testing.T) {
	s := newSystem(t)
	s.enqueue(one)
	if _, err := take(t.Context(), s.db, 1, "frozen"); err != nil {
		t.Fatal(err)
	}
	q, err := s.db.queue(new(river.Config))
	if err != nil {
		t.Fatal(err)
	}
	r := &recovery{&worker{name: "other", db: s.db, resubmit: true}, q, make(map[string]bool)}
	for _, want := range []string{sending, pending} {
		if err := r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.states() != want {
			t.Errorf("%s, want %s", s.states(), want)
		}
		s.set(`UPDATE outbox_refund SET sent_at = $1`, timeText(time.Now().Add(-submitTimeout)))
	}
}

// TestAnswerAfterDecision: somebody has to look at it.
func TestAnswerAfterDecision(t *testing.T) {
	s := newSystem(t)
	s.doubtful(one)
	s.must(0, "resolve", "-not-recorded", "1")
	w := &worker{name: "frozen", db: s.db}
	if err := w.recordOnce(t.Context(), &claim{row: 1, attempt: 1}, outcome{state: accepted}); err != nil {
		t.Fatal(err)
	}
	if got := s.must(exitAttention, "status"); !strings.Contains(got.Stdout, "late answers  1") {
		t.Errorf("%+v", got)
	}
	s.must(exitAttention, "resolve")
	s.must(0, "resolve", "-seen", "-note", "they recorded one", "1")
	s.must(0, "status")
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
	both, its := s.token(filter{state: unknown}), s.token(filter{state: unknown, account: "acct"})
	if got := s.must(2, "resolve", "-refund", "rf_1", "-accepted", "-expect", both); !strings.Contains(got.Stderr, "2 accounts have the refund_id") {
		t.Errorf("%+v", got)
	}
	s.must(exitAttention, "resolve", "-refund", "rf_1", "-account", "acct", "-accepted", "-expect", its)
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
	chosen := filter{state: rejected, current: true}
	if got := s.must(0, "resolve", "-rejected", "-resubmit", "-all", "-expect", s.token(chosen)); s.states() != "rejected pending accepted" ||
		!strings.HasPrefix(got.Stdout, "1 left out") {
		t.Errorf("%s: %+v", s.states(), got)
	}
	s.must(0, "resolve", "-rejected", "-resubmit", "1")
	if s.states() != "rejected pending accepted" {
		t.Error(s.states())
	}
	s.must(0, "resolve", "-rejected", "-superseded", "-resubmit", "1")
	if s.states() != "pending pending accepted" {
		t.Error(s.states())
	}
}
