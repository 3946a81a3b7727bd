package refundoutbox

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

// OpenPostgres connects to a database.
func OpenPostgres(ctx context.Context, url string) (*Database, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		// Its text could hold a part of the password.
		return nil, errors.New("outbox: this is no connection string of PostgreSQL")
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	d := &Database{Session: pgxSession{pool}, schema: Schema}
	db := stdlib.OpenDBFromPool(pool)
	d.Close = func() {
		db.Close()
		pool.Close()
	}
	d.Transact = func(ctx context.Context, f func(Tx) error) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return f(PostgresTx(d, tx)) })
	}
	d.inTurn = func(ctx context.Context, f func() error) error {
		// On a connection of its own: the pool may have only one, and f needs that.
		conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if err := lock(ctx, pgxSession{tx}, []string{"outbox migrate"}); err != nil {
				return err
			}
			return f()
		})
	}
	if err = pool.Ping(ctx); err == nil {
		err = open(d, riverpgxv5.New(pool), db, goose.DialectPostgres)
	}
	if err != nil {
		d.Close()
		return nil, fmt.Errorf("outbox: open the database: %w", err)
	}
	return d, nil
}

// PostgresTx makes a Tx of a team's own transaction on a database of OpenPostgres.
func PostgresTx(d *Database, tx pgx.Tx) Tx {
	t := newTx(d, pgxSession{tx}, tx)
	t.lock = func(ctx context.Context, names []string) error { return lock(ctx, t, names) }
	return t
}

// lock takes locks that end with the transaction, in one order, whoever takes them.
func lock(ctx context.Context, tx Session, names []string) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(key) FROM (
		SELECT DISTINCT hashtextextended(name, 0) AS key FROM unnest($1::text[]) AS name ORDER BY key) AS keys`, names)
	return err
}

// A pgxSession runs statements on a pool or in a transaction.
type pgxSession struct {
	on interface {
		pgxscan.Querier
		Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
	}
}

func (s pgxSession) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	tag, err := s.on.Exec(ctx, statement, args...)
	return tag.RowsAffected(), err
}

func (s pgxSession) Select(ctx context.Context, slice any, statement string, args ...any) error {
	return pgxscan.Select(ctx, s.on, slice, statement, args...)
}
