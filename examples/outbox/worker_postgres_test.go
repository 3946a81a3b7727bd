//go:build unix

package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

func TestPostgres(t *testing.T) {
	s := newPostgres(t)

	// A worker that lives keeps its marker, whoever comes.
	s.enqueue(one)
	s.engine.Script(sandbox.Refunds, sandbox.Fault{HeaderDelay: 2 * time.Second})
	cmd, wait := s.start()
	program.WaitFor(t, func() bool { return len(s.engine.Refunds()) == 1 })
	if got := s.must(0, "status").Stdout; !strings.Contains(got, "\na worker lives; ") {
		t.Error(got)
	}
	s.must(0, "work", "-drain")
	if s.states() != accepted || s.requests() != 1 || s.decisions() != "" {
		t.Errorf("%s, %d requests, decisions %s", s.states(), s.requests(), s.decisions())
	}

	// One that is killed loses it to the next.
	s.engine.Script(sandbox.Refunds, sandbox.Fault{HeaderDelay: time.Hour})
	s.enqueue(`{"refund_id":"rf_2"}`)
	program.WaitFor(t, func() bool { return len(s.engine.Refunds()) == 2 })
	cmd.Process.Kill()
	wait()
	s.must(0, "work", "-drain")
	if s.states() != "accepted unknown" || s.requests() != 2 {
		t.Errorf("%s, %d requests", s.states(), s.requests())
	}
	s.must(0, "migrate")
	if got := s.must(exitAttention, "status").Stdout; !strings.Contains(got, "\nno worker lives; ") {
		t.Error(got)
	}

	// One that loses its lock ends, before others take it for dead for long.
	_, wait = s.start()
	program.WaitFor(t, func() bool {
		n, err := s.db.exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = $1`, int64(lockSpace))
		return n == 1 && err == nil
	})
	if got := wait(); got.Code != 1 || !strings.Contains(got.Stderr, "outbox: the database is away: ") {
		t.Errorf("%+v", got)
	}
}

func TestPostgresNotMigrated(t *testing.T) {
	s := newSystem(t)
	s.at, s.vars["DATABASE_URL"] = nil, startPostgres(t)
	for _, command := range []string{"status", "resolve"} {
		if got := s.must(2, command); got.Stderr != "outbox: the tables are missing: run outbox migrate\n" {
			t.Errorf("%+v", got)
		}
	}
	s.vars["DATABASE_URL"] = strings.Replace(s.vars["DATABASE_URL"], "postgres:///", "postgres://u:canary@/", 1) + "/nowhere"
	s.must(1, "status").CheckMasked(t, "canary")
}

// TestEnqueuedTogether: of two transactions that enqueue a refund_id with two
// amounts, the second sees the first one's.
func TestEnqueuedTogether(t *testing.T) {
	s := newPostgres(t)
	ctx := t.Context()
	placeOf := func(tx transaction, amount int64) (placement, error) {
		got, err := store(ctx, tx, "acct", []*refunds.Refund{{RefundID: "a", Amount: &amount}}, false)
		return append(got, placement{})[0], err
	}
	var second placement
	ended := make(chan error, 1)
	err := s.db.transact(ctx, func(tx transaction) error {
		if _, err := placeOf(tx, 5); err != nil {
			return err
		}
		go func() {
			ended <- s.db.transact(ctx, func(tx transaction) (err error) {
				second, err = placeOf(tx, 6)
				return err
			})
		}()
		program.WaitFor(t, func() bool {
			waiting := false
			err := s.db.query(ctx, func(scan scanner) error { return scan(&waiting) }, `SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted)`)
			return err != nil || waiting || len(ended) > 0
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || !second.changed || second.row != 0 {
		t.Errorf("%+v, %v", second, err)
	}
}

// TestBuriedTogether: two workers that find the same dead one do not hinder each
// other.
func TestBuriedTogether(t *testing.T) {
	s := newPostgres(t)
	var records []string
	for n := range 500 {
		records = append(records, fmt.Sprintf(`{"refund_id":"rf_%d"}`, n))
	}
	s.enqueue(records...)
	ended := make(chan error)
	for range 5 {
		s.set(`UPDATE outbox_refund SET state = 'sending', worker = 'dead'`)
		for range 2 {
			r := &recovery{worker: &worker{name: "other", db: s.db}, done: make(map[string]bool)}
			go func() { ended <- r.bury(t.Context(), "dead", nil) }()
		}
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Count(s.states(), unknown) != len(records) {
		t.Error("not all markers are settled")
	}
}
