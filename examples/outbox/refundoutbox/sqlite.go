//go:build !nosqlite

package refundoutbox

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"time"

	"github.com/georgysavva/scany/v2/sqlscan"
	"github.com/gofrs/flock"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	_ "modernc.org/sqlite"
)

// OpenSQLite opens a file, and creates it if it is missing: then Migrate creates
// the tables.
func OpenSQLite(ctx context.Context, file string) (*Database, error) {
	// Only its owner can read it: refunds hold customers' data. SQLite gives the files
	// beside it the same mode.
	created, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	created.Close()
	// WAL: readers and the writer do not wait for each other. FULL: a committed
	// row also survives the loss of power, without which a marker could be lost
	// while its request is not. Immediate transactions and a long wait: processes
	// queue for the one writer in place of failing.
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+
		"?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
	if err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	// River's services run side by side, and SQLite takes one writer at a time: its
	// driver asks for a single connection.
	db.SetMaxOpenConns(1)
	d := &Database{Session: sqlSession{db}, Close: func() { db.Close() }}
	// River's migration would fail beside another, and so would the switch to WAL.
	d.inTurn = func(ctx context.Context, f func() error) error {
		turn := flock.New(file+".migrate", flock.SetPermissions(0o600)) // ends with the process
		if _, err := turn.TryLockContext(ctx, 50*time.Millisecond); err != nil {
			return err
		}
		defer turn.Unlock()
		return f()
	}
	d.Transact = func(ctx context.Context, f func(Tx) error) error {
		began := time.Now()
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		// SQLite does not queue those who wait to write: they look again, every 100 ms
		// in the end. Transactions in a tight loop, as of an enqueue, would keep a worker
		// waiting for as long as they go on.
		defer func() { time.Sleep(min(time.Since(began), 100*time.Millisecond)) }()
		defer tx.Rollback()
		if err := f(SQLiteTx(d, tx)); err != nil {
			return err
		}
		return tx.Commit()
	}
	err = d.inTurn(ctx, func() error { return db.PingContext(ctx) })
	if err == nil {
		err = open(d, riversqlite.New(db), db, goose.DialectSQLite3)
	}
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("outbox: %w", &fs.PathError{Op: "open", Path: file, Err: err})
	}
	return d, nil
}

// SQLiteTx makes a Tx of a team's own transaction on a database of OpenSQLite.
func SQLiteTx(d *Database, tx *sql.Tx) Tx { return newTx(d, sqlSession{tx}, tx) }

// A sqlSession runs statements on a *sql.DB or a *sql.Tx.
type sqlSession struct {
	on interface {
		sqlscan.Querier
		ExecContext(context.Context, string, ...any) (sql.Result, error)
	}
}

func (s sqlSession) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	result, err := s.on.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (s sqlSession) Select(ctx context.Context, slice any, statement string, args ...any) error {
	return sqlscan.Select(ctx, s.on, slice, statement, args...)
}
