//go:build unix

package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds/refundstest"
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

// TestPostgresTransactions: a record waits for a transaction that enqueues its refund_id, and
// sees what was committed, and so does a Submit. TestKilled has transactions of database/sql.
func TestPostgresTransactions(t *testing.T) {
	s, pool := newPostgres(t, newDatabase(t))
	ctx := t.Context()
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
	submitted := make(chan Entry)
	go func() {
		e, err := s.box.Submit(ctx, s.w.Client, Item{AccountID: "acct", Refund: repeated("pgx", 5)})
		if err != nil {
			t.Error(err)
		}
		submitted <- e
	}()
	for s.column(`SELECT CAST(COUNT(*) AS TEXT) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'`) != "2" {
	}
	if err := first.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-second; !errors.Is(err, ErrAmountChanged) {
		t.Error(err)
	}
	if e := <-submitted; e.Row != 1 || e.State != Accepted || s.requests() != 1 {
		t.Errorf("%+v", e)
	}
	s.check("accepted")
}

// TestPostgresOneConnection: nothing needs two connections of the pool at once. With the
// only one, a setting holds for all: a server that can lose a commit is not worked.
func TestPostgresOneConnection(t *testing.T) {
	box, _ := openPool(t, strings.Replace(newDatabase(t), "pool_max_conns=12", "pool_max_conns=1", 1))
	if _, err := box.Status(t.Context()); !errors.Is(err, ErrTables) {
		t.Errorf("before Migrate: %v", err)
	}
	if err := box.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := serve(t, box)
	s.enqueue(refund("a", 5), refund("b", 5))
	s.set(`SET synchronous_commit = off`)
	if err := box.Run(t.Context(), s.w.Config); err == nil || !strings.Contains(err.Error(), "synchronous_commit") {
		t.Error(err)
	}
	s.set(`RESET synchronous_commit`)
	s.drain()
	s.check("accepted accepted")
	if _, err := box.Status(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestPostgresCrashes: a worker goes on when it loses all its connections, and when the
// server crashes.
func TestPostgresCrashes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: run without -short")
	}
	s, _ := newPostgres(t, newDatabase(t))
	server, err := servers()
	usable(t, err)
	const records = 200
	for n := range records {
		s.enqueue(refund(fmt.Sprint("rf_", n), 5))
	}
	s.fake.ScriptFunc(func(sandbox.Request) sandbox.Fault { return sandbox.Fault{Delay: 5 * time.Millisecond} })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.box.Run(ctx, s.w.Config) }()
	for i, befall := range []func() error{
		func() error {
			return server.execute(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`)
		},
		func() error { return errors.Join(server.stop(), server.start()) },
	} {
		for s.requests() < (i+1)*records/4 {
			time.Sleep(time.Millisecond)
		}
		if err := befall(); err != nil {
			t.Fatal(err)
		}
	}
	for left := true; left; time.Sleep(50 * time.Millisecond) {
		// Nothing here is as old as a mark must be to be taken for dead.
		s.box.exec(ctx, `UPDATE outbox_refund SET sent_at = '2026-01-01T00:00:00.000Z' WHERE state = 'sending' AND sent_at < $1`, timeText(time.Now().Add(-3*time.Second)))
		s.box.exec(ctx, `UPDATE outbox.river_job SET attempted_at = now() - interval '1 minute' WHERE state = 'running' AND attempted_at < now() - interval '3 seconds'`)
		found, err := one[bool](ctx, s.box, `SELECT EXISTS (SELECT 1 FROM outbox_refund WHERE state IN ('pending', 'sending'))`)
		left = found || err != nil
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s.audit(records)
}

// TestPostgresTell: a notice counts if the transaction of pgx commits.
func TestPostgresTell(t *testing.T) {
	box, pool := openPool(t, newDatabase(t))
	if err := box.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := serve(t, box)
	s.enqueue(refund("a", 5))
	tell := func(v Verdict, commit bool) *Difference {
		t.Helper()
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(t.Context())
		d, err := box.TellPgx(t.Context(), tx, Notice{AccountID: "acct", RefundID: "a", Verdict: v, By: "a webhook"})
		if err == nil && commit {
			err = tx.Commit(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	tell(Recorded, false)
	s.check("pending")
	tell(Recorded, true)
	s.check("accepted")
	if d := tell(NotRecorded, true); d == nil || d.Row != 1 {
		t.Errorf("%+v", d)
	}
	kept, err := box.Differences(t.Context())
	if err != nil || len(kept) != 1 || kept[0].Row != 1 {
		t.Errorf("%+v, %v", kept, err)
	}
}

// TestReceipt: an accepted refund has what the service said, up to a limit.
func TestReceipt(t *testing.T) {
	eachDatabase(t, func(t *testing.T, database string) {
		box := newSystemOn(t, database).box
		fake := refundstest.NewServer(nil)
		defer fake.Close()
		said := "\xff\x00" + strings.Repeat("é", bodyLimit)
		fake.SetResponse(201, "text/plain", said)
		if _, err := box.Submit(t.Context(), fake.Client(), Item{AccountID: "acct", Refund: refund("a", 5)}); err != nil {
			t.Fatal(err)
		}
		found, err := box.Get(t.Context(), "acct", "a")
		if err != nil || len(found) != 1 || found[0].Receipt == nil {
			t.Fatal(found, err)
		}
		if r := found[0].Receipt; r.StatusCode != 201 || r.ContentType != "text/plain" || !bytes.Equal(r.Body, []byte(said)[:bodyLimit]) || r.RequestID != found[0].RequestID {
			t.Errorf("%+v", *r)
		}
		if none, err := box.Get(t.Context(), "acct", "b"); len(none) != 0 || err != nil {
			t.Errorf("%+v, %v", none, err)
		}
	})
}
