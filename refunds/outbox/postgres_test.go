//go:build unix

package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// newPostgres is newSystem on PostgreSQL.
func newPostgres(t *testing.T, dsn string) (*system, *pgxpool.Pool) {
	t.Helper()
	box, pool := openPool(t, dsn)
	if err := box.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return serve(t, box), pool
}

// TestPostgresTransactions: a refund is there if its transaction commits, of pgx and of
// database/sql, and a record that changes another one sees it.
func TestPostgresTransactions(t *testing.T) {
	dsn, _ := newDatabase(t)
	s, pool := newPostgres(t, dsn)
	ctx := t.Context()
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	for _, commit := range []bool{false, true} {
		tx, err := db.BeginTx(ctx, nil)
		if err == nil {
			_, err = s.box.Enqueue(ctx, tx, Item{AccountID: "acct", Refund: refund("sql", 5)})
		}
		if err == nil && commit {
			err = tx.Commit()
		}
		if err != nil {
			t.Fatal(err)
		}
		tx.Rollback()
	}
	first, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.box.EnqueuePgx(ctx, first, Item{AccountID: "acct", Refund: refund("pgx", 5)}); err != nil {
		t.Fatal(err)
	}
	second := make(chan error)
	go func() {
		second <- pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			_, err := s.box.EnqueuePgx(ctx, tx, Item{AccountID: "acct", Refund: refund("pgx", 6)})
			return err
		})
	}()
	for s.column(`SELECT locktype FROM pg_locks WHERE NOT granted AND locktype = 'advisory'`) == "" {
	}
	if err := first.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-second; !errors.Is(err, ErrAmountChanged) {
		t.Error(err)
	}
	s.w.Drain = true
	if err := s.box.Run(ctx, s.w.Config); err != nil {
		t.Fatal(err)
	}
	s.check("accepted accepted")
	if s.requests() != 2 {
		t.Errorf("%d requests", s.requests())
	}
}

// TestPostgresOneConnection: nothing needs two connections of the pool at once.
func TestPostgresOneConnection(t *testing.T) {
	dsn, _ := newDatabase(t)
	box, _ := openPool(t, strings.Replace(dsn, "pool_max_conns=12", "pool_max_conns=1", 1))
	if _, err := box.Status(t.Context()); !errors.Is(err, ErrTables) {
		t.Errorf("before Migrate: %v", err)
	}
	if err := box.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := serve(t, box)
	s.enqueue(refund("a", 5), refund("b", 5))
	s.w.Drain = true
	if err := box.Run(t.Context(), s.w.Config); err != nil {
		t.Fatal(err)
	}
	s.check("accepted accepted")
	if _, err := box.Status(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestPostgresNoAnswer: a database that does not answer is no reason to migrate.
func TestPostgresNoAnswer(t *testing.T) {
	dsn, _ := newDatabase(t)
	s, pool := newPostgres(t, dsn)
	away, _ := openPool(t, "postgres:///outbox?user=postgres&host="+t.TempDir())
	_, down := away.Status(t.Context())
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), `SELECT 1/0`); err == nil {
		t.Fatal("the transaction is not aborted")
	}
	_, aborted := s.box.EnqueuePgx(t.Context(), tx, Item{AccountID: "acct", Refund: refund("a", 5)})
	for want, err := range map[string]error{"failed to connect": down, "aborted": aborted} {
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, ErrTables) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

// TestPostgresSettings: a server that can lose a commit is refused.
func TestPostgresSettings(t *testing.T) {
	dsn, _ := newDatabase(t)
	box, _ := openPool(t, dsn+"&synchronous_commit=off")
	if err := box.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := serve(t, box)
	if err := box.Run(t.Context(), s.w.Config); err == nil || !strings.Contains(err.Error(), "synchronous_commit") {
		t.Error(err)
	}
}

// A trial is a worker with refunds to send, and a database that fails.
func (s *system) trial(records int, befall func(sent int) error) {
	s.t.Helper()
	if testing.Short() {
		s.t.Skip("takes seconds: run without -short")
	}
	for n := range records {
		s.enqueue(refund(fmt.Sprint("rf_", n), 5))
	}
	s.engine.ScriptFunc(sandbox.Refunds, func(sandbox.Request) sandbox.Fault { return sandbox.Fault{HeaderDelay: 5 * time.Millisecond} })
	ctx, stop := context.WithCancel(s.t.Context())
	ended := make(chan error)
	go func() { ended <- s.box.Run(ctx, s.w.Config) }()
	for at := records / 5; at < records*4/5; at += records / 5 {
		for s.requests() < at {
			time.Sleep(time.Millisecond)
		}
		if err := befall(s.requests()); err != nil {
			s.t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		// Nothing here is as old as a mark must be to be taken for dead.
		s.box.exec(ctx, `UPDATE outbox_refund SET sent_at = '2026-01-01T00:00:00.000Z' WHERE state = 'sending' AND sent_at < $1`, timeText(time.Now().Add(-3*time.Second)))
		s.box.exec(ctx, `UPDATE outbox.river_job SET attempted_at = now() - interval '1 minute' WHERE state = 'running' AND attempted_at < now() - interval '3 seconds'`)
		left, err := one[int](ctx, s.box, `SELECT COUNT(*) FROM outbox_refund WHERE state IN ('pending', 'sending')`)
		if err == nil && left == 0 {
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%d refunds are left, %v", left, err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		s.t.Error(err)
	}
	s.audit(records)
}

// TestPostgresConnectionsLost: a worker that loses all its connections goes on.
func TestPostgresConnectionsLost(t *testing.T) {
	dsn, server := newDatabase(t)
	s, _ := newPostgres(t, dsn)
	s.trial(400, func(int) error {
		return server.execute(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 'outbox%'`)
	})
}

// TestPostgresCrash: the server crashes under a worker, and starts again.
func TestPostgresCrash(t *testing.T) {
	dsn, server := newDatabase(t)
	s, _ := newPostgres(t, dsn)
	s.trial(400, func(int) error { return errors.Join(server.stop(), server.start()) })
}

// TestPostgresFailover: the server is gone, and a standby takes its place. It has every
// commit that was acknowledged, because the replication is synchronous.
func TestPostgresFailover(t *testing.T) {
	primary, err := startServer("")
	usable(t, primary, err)
	defer primary.remove()
	if err := errors.Join(primary.execute(t, `ALTER SYSTEM SET synchronous_standby_names = '*'`), primary.execute(t, `SELECT pg_reload_conf()`)); err != nil {
		t.Fatal(err)
	}
	standby, err := startServer(primary.dir)
	usable(t, standby, err)
	defer standby.remove()
	box, _ := openPool(t, fmt.Sprintf("postgres:///postgres?user=postgres&pool_max_conns=12&target_session_attrs=read-write&host=%s,%s", primary.dir, standby.dir))
	if err := box.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	failed := false
	serve(t, box).trial(400, func(int) error {
		if failed {
			return nil
		}
		failed = true
		return errors.Join(primary.stop(), standby.run("pg_ctl", "-w", "promote"), standby.execute(t, `ALTER SYSTEM RESET synchronous_standby_names`), standby.execute(t, `SELECT pg_reload_conf()`))
	})
}
