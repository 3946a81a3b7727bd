package refundoutbox

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

func refundsOf(all ...*refunds.Refund) []*refunds.Refund { return all }

// recoverer is a worker that has just started.
func (s *system) recoverer() *worker {
	return &worker{Config: s.w.Config, name: "other", db: s.db}
}

// TestBuried: a marker is in doubt when its request is over, and its worker has not
// written the outcome down. Only then it is sent again by itself.
func TestBuried(t *testing.T) {
	for resubmit, buried := range map[bool]string{false: "unknown sending", true: "pending sending"} {
		s := newSystem(t)
		s.enqueue(refund("a", 5), refund("b", 5))
		for row := range int64(2) {
			if _, err := take(t.Context(), s.db, row+1, "frozen"); err != nil {
				t.Fatal(err)
			}
		}
		r := s.recoverer()
		r.Resubmit = resubmit
		s.set(`UPDATE outbox_refund SET sent_at = $1`, timeText(time.Now().Add(-submitTimeout)))
		for _, want := range []string{"sending sending", buried} {
			if err := r.recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.check(want)
			s.set(`UPDATE outbox_refund SET sent_at = $1 WHERE id = 1`, timeText(time.Now().Add(-staleAfter)))
		}
	}
}

// TestLives: whether a worker lives is known for as long as it does.
func TestLives(t *testing.T) {
	s := newSystem(t)
	lives := func() bool {
		t.Helper()
		sum, err := Summarize(t.Context(), s.db)
		if err != nil {
			t.Error(err)
		}
		return sum.WorkerLives
	}
	if lives() {
		t.Error("before there is one")
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- Run(ctx, s.db, s.w.Config) }()
	for !lives() {
	}
	stop()
	if err := <-ended; err != nil || lives() {
		t.Errorf("after its end: %v, %v", lives(), err)
	}
}

// TestJobOfDeadWorker: a refund that a worker had fetched, and not begun, gets another
// job. The old one stays with River for a while, and sends nothing.
func TestJobOfDeadWorker(t *testing.T) {
	s := newSystem(t)
	s.enqueue(refund("a", 5))
	for ago, want := range map[time.Duration]string{orphanedAfter / 2: "1", 2 * orphanedAfter: "2"} {
		s.set(`DELETE FROM river_job WHERE state = 'available' AND id > 1`)
		s.set(`UPDATE river_job SET state = 'running', attempted_at = $1 WHERE id = 1`, time.Now().Add(-ago).UTC().Format("2006-01-02 15:04:05.999"))
		if sum, err := Summarize(t.Context(), s.db); err != nil || sum.PendingWithoutJob != 0 {
			t.Errorf("%+v, %v", sum, err)
		}
		for range 2 {
			if err := s.recoverer().recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := s.column(`SELECT CAST(COUNT(*) AS TEXT) FROM river_job`); got != want {
				t.Errorf("running for %v: %s jobs, want %s", ago, got, want)
			}
		}
	}
}

// TestTooEarly: nothing is sent again, or declared absent, while the request can still
// leave a worker that was frozen.
func TestTooEarly(t *testing.T) {
	s := newSystem(t)
	s.enqueue(refund("a", 5))
	s.attempt(1, sandbox.Fault{DropBefore: true})
	chosen, err := List(t.Context(), s.db, Filter{State: Unknown})
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []Event{DecideNotRecorded, DecideResubmit, DecideClosed} {
		if _, err := Decide(t.Context(), s.db, chosen, Decision{Who: "ann", What: what}); !errors.Is(err, ErrTooEarly) {
			t.Errorf("%s: %v", what, err)
		}
	}
	plan, err := Compare(t.Context(), s.db, &Report{ID: "r", Until: time.Now(), Rows: []ReportRow{{Line: 1, Account: "acct", RefundID: "z"}}})
	if err != nil || plan.NotCovered != 1 || plan.Changes() != 0 {
		t.Errorf("%+v, %v", plan, err)
	}
	s.check("unknown")
}

// TestPendingWithoutJob: a refund whose job is gone, as after a backup was restored or
// a person deleted it, gets another, but not one that waits for a decision.
func TestPendingWithoutJob(t *testing.T) {
	s := newSystem(t)
	s.enqueue(refund("a", 5), refund("b", 5), refund("b", 6), refund("c", 5))
	s.attempt(2, sandbox.Fault{DropBefore: true})
	s.set(`DELETE FROM river_job WHERE json_extract(args, '$.row') <> 4`)
	if sum, err := Summarize(t.Context(), s.db); err != nil || sum.PendingWithoutJob != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
	if err := s.recoverer().recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.column(`SELECT CAST(args->>'row' AS TEXT) FROM river_job ORDER BY 1`); got != "1 4" {
		t.Errorf("the jobs are of the rows %s", got)
	}
	if sum, err := Summarize(t.Context(), s.db); err != nil || sum.PendingWithoutJob != 0 {
		t.Errorf("%+v, %v", sum, err)
	}
}

// A resolver says what a test wants.
type resolver struct {
	found    bool
	amount   int64
	currency string
	err      error
	asked    int
}

func (r *resolver) Resolve(context.Context, string, string) (bool, int64, string, error) {
	r.asked++
	return r.found, r.amount, r.currency, r.err
}

// TestResolver: what a resolver's answer leads to. It is asked again after a while,
// and not about what is settled.
func TestResolver(t *testing.T) {
	for _, test := range []struct {
		name  string
		r     resolver
		want  string
		asked int // when it could have been twice
	}{
		{"found", resolver{found: true, amount: 5, currency: "EUR"}, "accepted", 1},
		{"not found", resolver{}, "absent", 1},
		{"another amount", resolver{found: true, amount: 6, currency: "EUR"}, "unknown", 2},
		{"another currency", resolver{found: true, amount: 5, currency: "USD"}, "unknown", 2},
		{"failure", resolver{err: errors.New("away")}, "unknown", 2},
	} {
		s := newSystem(t)
		s.enqueue(refund("a", 5))
		s.attempt(1, sandbox.Fault{DropAfter: true})
		r := s.recoverer()
		r.Resolver = &test.r
		for _, want := range []int{0, 1, 1} {
			if err := r.recover(t.Context()); err != nil || test.r.asked != want {
				t.Errorf("%s: asked %d times, want %d; %v", test.name, test.r.asked, want, err)
			}
			s.age()
		}
		s.set(`UPDATE outbox_refund SET asked_at = ''`)
		if err := r.recover(t.Context()); err != nil || test.r.asked != test.asked {
			t.Errorf("%s: asked %d times, want %d; %v", test.name, test.r.asked, test.asked, err)
		}
		s.check(test.want)
	}
}

// TestResolverUpdate: that the service has a refund_id says nothing about an update
// of it.
func TestResolverUpdate(t *testing.T) {
	s := newSystem(t)
	update := refund("a", 5)
	update.SVCCodes.SVCRefundStatus = "done"
	s.enqueue(refund("a", 5), update)
	s.attempt(1, sandbox.Fault{})
	s.attempt(2, sandbox.Fault{DropBefore: true})
	s.age()
	r := s.recoverer()
	r.Resolver = &resolver{found: true, amount: 5, currency: "EUR"}
	if err := r.recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.check("accepted unknown")
}
