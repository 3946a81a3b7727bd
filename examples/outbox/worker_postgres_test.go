//go:build unix

package main

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
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
	program.WaitFor(t, func() bool { return strings.Contains(s.must(0, "status").Stdout, "\na worker lives; ") })
	s.must(0, "work", "-drain")
	if s.states() != accepted || s.requests() != 1 || s.decisions() != "" {
		t.Errorf("%s, %d requests, decisions %s", s.states(), s.requests(), s.decisions())
	}

	// One that is killed loses it to the next.
	s.engine.Script(sandbox.Refunds, sandbox.Fault{HeaderDelay: time.Hour})
	s.enqueue(`{"refund_id":"rf_2"}`)
	program.WaitFor(t, func() bool { return len(s.engine.Refunds()) == 2 })
	s.kill(cmd, wait)
	s.must(0, "work", "-drain")
	if s.states() != "accepted unknown" || s.requests() != 2 {
		t.Errorf("%s, %d requests", s.states(), s.requests())
	}
	s.must(0, "migrate")
	if got := s.must(exitAttention, "status").Stdout; !strings.Contains(got, "\nno worker lives; ") {
		t.Error(got)
	}

	// One that loses all its connections goes on.
	url := s.vars["DATABASE_URL"]
	s.vars["DATABASE_URL"] += "&application_name=worker"
	cmd, wait = s.start()
	s.vars["DATABASE_URL"] = url
	for n := range 3 {
		s.enqueue(fmt.Sprintf(`{"refund_id":"rf_3%d"}`, n))
		program.WaitFor(t, func() bool { return strings.Count(s.states(), accepted) == n+2 })
		program.WaitFor(t, func() bool {
			return len(s.texts(`SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE application_name = 'worker'`)) > 0
		})
	}
	s.must(0, "work", "-drain")
	s.kill(cmd, wait)
	if s.requests() != 5 {
		t.Errorf("%d requests", s.requests())
	}
}

func TestPostgresNotMigrated(t *testing.T) {
	s := newUnmigrated(t)
	for _, command := range []string{"status", "resolve", "work"} {
		if got := s.must(2, command); !strings.Contains(got.Stderr, "outbox: the tables are missing") || !strings.Contains(got.Stderr, "run outbox migrate") {
			t.Errorf("%+v", got)
		}
	}
	s.vars["DATABASE_URL"] = strings.Replace(s.vars["DATABASE_URL"], "postgres:///", "postgres://u:canary@/", 1) + "/nowhere"
	s.must(1, "status").CheckMasked(t, "canary")
	s.vars["DATABASE_URL"] = "postgres://u:canary@h:x/d"
	s.must(1, "status").CheckMasked(t, "canary")
}

// TestPostgresOneConnection: no command needs two connections of the pool at once.
func TestPostgresOneConnection(t *testing.T) {
	s := newUnmigrated(t)
	s.vars["DATABASE_URL"] = strings.Replace(s.vars["DATABASE_URL"], "pool_max_conns=12", "pool_max_conns=1", 1)
	s.must(0, "migrate")
	s.enqueue(one, `{"refund_id":"rf_2"}`)
	s.must(0, "work", "-drain")
	s.must(0, "status")
	if s.states() != "accepted accepted" {
		t.Error(s.states())
	}
}

// TestPostgresEnqueuedTogether: of two transactions that enqueue a refund_id with two
// amounts, the second sees the first one's.
func TestPostgresEnqueuedTogether(t *testing.T) {
	s := newPostgres(t)
	ctx := t.Context()
	place := func(tx refundoutbox.Tx, amount int64) (refundoutbox.Placement, error) {
		got, err := refundoutbox.Enqueue(ctx, tx, "acct", []*refunds.Refund{{RefundID: "a", Amount: &amount}}, false)
		return append(got, refundoutbox.Placement{})[0], err
	}
	var second refundoutbox.Placement
	ended := make(chan error, 1)
	err := s.db.Transact(ctx, func(tx refundoutbox.Tx) error {
		if _, err := place(tx, 5); err != nil {
			return err
		}
		go func() {
			ended <- s.db.Transact(ctx, func(tx refundoutbox.Tx) (err error) {
				second, err = place(tx, 6)
				return err
			})
		}()
		program.WaitFor(t, func() bool {
			return len(s.texts(`SELECT locktype FROM pg_locks WHERE NOT granted`)) > 0 || len(ended) > 0
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || !second.Changed || second.Row != 0 {
		t.Errorf("%+v, %v", second, err)
	}
}

// TestPostgresBuriedTogether: workers that find the same dead one do not hinder each
// other.
func TestPostgresBuriedTogether(t *testing.T) {
	s := newPostgres(t)
	var records []string
	for n := range 500 {
		records = append(records, fmt.Sprintf(`{"refund_id":"rf_%d"}`, n))
	}
	s.enqueue(records...)
	for range 3 {
		s.set(`UPDATE outbox_refund SET state = 'sending', attempts = 1, sent_at = '2026-01-01T00:00:00.000Z'`)
		_, one := s.start("-drain")
		_, other := s.start("-drain")
		for _, got := range []program.Result{one(), other()} {
			if got.Code != 0 || strings.Contains(got.Stderr, "deadlock") {
				t.Errorf("%+v", got)
			}
		}
	}
	if strings.Count(s.states(), unknown) != len(records) || s.requests() != 0 {
		t.Error("not all markers are settled")
	}
}

// TestPostgresCrashes: the server crashes under a worker, several times. What the worker
// could not write down is written down later or unknown, and nobody is told of a
// decision that nobody made.
func TestPostgresCrashes(t *testing.T) {
	s := newPostgres(t)
	var records []string
	for n := range 400 {
		records = append(records, fmt.Sprintf(`{"refund_id":"rf_%d","amount":%d}`, n, n))
	}
	s.enqueue(records...)
	_, dir, _ := strings.Cut(s.vars["DATABASE_URL"], "host=")
	for _, enough := range []int{60, 160, 260} {
		cmd, wait := s.start("-concurrency", "8")
		program.WaitFor(t, func() bool { return s.requests() >= enough })
		runPostgres(t, dir, "pg_ctl", "-w", "-m", "immediate", "restart", "-l", filepath.Join(dir, "log"), "-o", "-c listen_addresses='' -c fsync=off -k "+dir)
		cmd.Process.Signal(syscall.SIGTERM)
		wait()
	}
	program.WaitFor(t, func() bool { // markers whose commit was not acknowledged
		_, err := s.db.Exec(t.Context(), `UPDATE outbox_refund SET sent_at = '2026-01-01T00:00:00.000Z' WHERE state = 'sending'`)
		return err == nil
	})
	program.WaitFor(t, func() bool { return s.run("work", "-drain").Code == 0 })
	times := make(map[string]int)
	for _, r := range s.engine.Refunds() {
		if times[r.RefundID]++; times[r.RefundID] > 1 {
			t.Errorf("%s is recorded twice", r.RefundID)
		}
	}
	counts := make(map[string]int)
	for state := range strings.FieldsSeq(s.states()) {
		counts[state]++
	}
	if counts[accepted]+counts[unknown] != len(records) || counts[accepted] < len(records)*3/4 || counts[accepted] > len(times) {
		t.Errorf("%v, %d recorded", counts, len(times))
	}
	if strings.Contains(s.decisions(), "late response, after") {
		t.Error(s.decisions())
	}
	t.Log(counts, s.decisions())
}

// TestPostgresOtherTeam: another team has a River of its own in the database. Its jobs
// are left alone, also those that it works for so long that River would rescue them,
// and it gets none of ours.
func TestPostgresOtherTeam(t *testing.T) {
	s := newPostgres(t)
	s.riverOfOthers()
	s.set(`INSERT INTO river_job (args, kind, max_attempts, queue, state, attempt, attempted_at, attempted_by)
		VALUES ('{}', 'send_email', 25, 'default', 'running', 1, now() - interval '30 minutes', '{them}'), ('{}', 'send_email', 25, 'default', 'available', 0, NULL, NULL)`)
	s.enqueue(one)
	s.must(0, "migrate") // as of the next release
	s.must(0, "work", "-drain")
	theirs := strings.Join(s.texts(`SELECT kind || ' ' || state FROM river_job ORDER BY id`), ", ")
	if theirs != "send_email running, send_email available" || s.states() != accepted {
		t.Errorf("their jobs: %s; %s", theirs, s.states())
	}
	if n := s.jobs(rivertype.JobStateCompleted); n != 1 {
		t.Errorf("%d jobs of ours", n)
	}
}

// riverOfOthers makes the tables of River that other programs have.
func (s *system) riverOfOthers() {
	s.t.Helper()
	pool, err := pgxpool.New(s.t.Context(), s.vars["DATABASE_URL"])
	if err != nil {
		s.t.Fatal(err)
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		_, err = migrator.Migrate(s.t.Context(), rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}
