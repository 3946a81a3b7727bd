package refundoutbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river"
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
	d.close = func() {
		db.Close()
		pool.Close()
	}
	d.transact = func(ctx context.Context, f func(Tx) error) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return f(PostgresTx(d, tx)) })
	}
	d.inTurn = func(ctx context.Context, f func() error) error {
		return d.Transact(ctx, func(tx Tx) error {
			if err := tx.lock(ctx, []string{"outbox migrate"}); err != nil {
				return err
			}
			return f() // on other connections
		})
	}
	if err = pool.Ping(ctx); err == nil {
		err = open(d, riverpgxv5.New(pool), db, goose.DialectPostgres)
	}
	if err != nil {
		d.close()
		return nil, fmt.Errorf("outbox: open the database: %w", err)
	}
	return d, nil
}

type pgxTx struct {
	pgxSession
	tx     pgx.Tx
	insert *river.Client[pgx.Tx]
}

// PostgresTx makes a Tx of a team's own transaction on a database of OpenPostgres.
func PostgresTx(d *Database, tx pgx.Tx) Tx {
	return pgxTx{pgxSession{tx}, tx, d.insert.(*river.Client[pgx.Tx])}
}

func (t pgxTx) insertJobs(ctx context.Context, jobs []river.InsertManyParams) error {
	_, err := t.insert.InsertManyFastTx(ctx, t.tx, jobs)
	return err
}

// lock takes locks that end with the transaction, in one order, whoever takes them.
func (t pgxTx) lock(ctx context.Context, names []string) error {
	_, err := t.Exec(ctx, `SELECT pg_advisory_xact_lock(key) FROM (
		SELECT DISTINCT hashtextextended(name, 0) AS key FROM unnest($1::text[]) AS name ORDER BY key) AS keys`, names)
	return err
}

// A pgxSession runs statements on a pool or in a transaction.
type pgxSession struct {
	on interface {
		Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
		Query(context.Context, string, ...any) (pgx.Rows, error)
	}
}

func (s pgxSession) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	tag, err := s.on.Exec(ctx, statement, args...)
	return tag.RowsAffected(), err
}

func (s pgxSession) Query(ctx context.Context, row func(Scanner) error, statement string, args ...any) error {
	rows, err := s.on.Query(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
