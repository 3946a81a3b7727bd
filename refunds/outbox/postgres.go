package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/georgysavva/scany/v2/pgxscan"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// OpenPostgres opens the outbox in the database of a pool, without a connection: errors of
// the database come from the methods. Give a worker's pool about one connection for
// each request in flight. With one connection everything works, one statement after the
// other. Migrate makes a connection beside the pool, with the pool's settings.
//
// The isolation level must be READ COMMITTED, which is the default.
func OpenPostgres(pool *pgxpool.Pool) (*Outbox, error) {
	if pool == nil {
		return nil, errors.New("outbox: no pool")
	}
	o := &Outbox{session: pgxSession{pool}, schema: riverSchema, jobArgs: "jsonb_build_object"}
	o.transact = func(ctx context.Context, f func(session) error) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return f(pgxSession{tx}) })
	}
	o.inTurn = func(ctx context.Context, f func() error) error {
		// The pool may have only one connection, and f needs that.
		conn, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
		if err != nil {
			return fmt.Errorf("outbox: migrate: %w", err)
		}
		defer conn.Close(context.WithoutCancel(ctx))
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if err := lock(ctx, pgxSession{tx}, "outbox migrate"); err != nil {
				return err
			}
			return f()
		})
	}
	o.durable = func(ctx context.Context) error {
		commit, err := one[string](ctx, o, `SELECT current_setting('synchronous_commit')`)
		if err == nil && commit == "off" {
			err = errors.New("outbox: with synchronous_commit=off a crash of the server loses what was sent, and it would be sent again")
		}
		return err
	}
	return o, open(o, riverpgxv5.New(pool), stdlib.OpenDBFromPool(pool), goose.DialectPostgres)
}

// lock waits until no other transaction has the lock of a name, and holds it until tx ends.
func lock(ctx context.Context, tx session, name string) error {
	_, err := tx.exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, name)
	return err
}

// A pgxSession runs statements on a pool or in a transaction.
type pgxSession struct {
	on interface {
		pgxscan.Querier
		Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
	}
}

func (s pgxSession) exec(ctx context.Context, statement string, args ...any) (int64, error) {
	tag, err := s.on.Exec(ctx, statement, args...)
	return tag.RowsAffected(), err
}

func (s pgxSession) query(ctx context.Context, slice any, statement string, args ...any) error {
	return pgxscan.Select(ctx, s.on, slice, statement, args...)
}
