package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/carddata/carddata-go/examples/internal/target"
)

type sqliteDatabase struct {
	sqlSession
	file   string
	db     *sql.DB
	driver *riversqlite.Driver
	insert *river.Client[*sql.Tx]
}

func openSQLite(ctx context.Context, file string) (database, error) {
	if err := createPrivate(file); err != nil {
		return nil, target.Usage("outbox: %v", err)
	}
	// A worker's lock is one of the file, whatever it is called.
	file, err := filepath.EvalSymlinks(file)
	if err != nil {
		return nil, target.Usage("outbox: %v", err)
	}
	// WAL: readers and the writer do not wait for each other. FULL: a committed
	// row also survives the loss of power, without which a marker could be lost
	// while its request is not. Immediate transactions and a long wait: processes
	// queue for the one writer in place of failing.
	db, err := sql.Open("sqlite", sqliteName(file, "_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate"))
	if err != nil {
		return nil, err
	}
	// River's services run side by side, and SQLite takes one writer at a time:
	// its driver asks for a single connection.
	db.SetMaxOpenConns(1)
	d := &sqliteDatabase{sqlSession: sqlSession{db}, file: file, db: db, driver: riversqlite.New(db)}
	if d.insert, err = river.NewClient(d.driver, &river.Config{}); err == nil {
		err = d.migrate(ctx)
	}
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("outbox: open %s: %w", file, err)
	}
	return d, nil
}

// createPrivate creates a file, if it is missing, that only its owner can read:
// refunds hold customers' data. SQLite gives the files beside it the same mode.
func createPrivate(name string) error {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

func sqliteName(file, parameters string) string {
	return "file:" + (&url.URL{Path: file}).EscapedPath() + "?" + parameters
}

func (d *sqliteDatabase) close() { d.db.Close() }

// migrate takes turns with other programs: River's migration would fail beside
// another, and so would the switch to WAL.
func (d *sqliteDatabase) migrate(ctx context.Context) error {
	turn, err := lockFile(ctx, d.file+".migrate", 30*time.Second)
	if err != nil {
		return err
	}
	defer turn.release()
	migrator, err := rivermigrate.New(d.driver, &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	_, err = d.exec(ctx, schema("INTEGER PRIMARY KEY AUTOINCREMENT"))
	return err
}

func (d *sqliteDatabase) queue(config *river.Config) (queue, error) {
	return river.NewClient(d.driver, config)
}

type sqliteTransaction struct {
	sqlSession
	tx     *sql.Tx
	insert *river.Client[*sql.Tx]
}

func (d *sqliteDatabase) transact(ctx context.Context, f func(transaction) error) error {
	began := time.Now()
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	// SQLite does not queue those who wait to write: they look again, every 100 ms
	// in the end. Transactions in a tight loop, as of an enqueue, would keep a worker
	// waiting for as long as they go on.
	defer func() { time.Sleep(min(time.Since(began), 100*time.Millisecond)) }()
	defer tx.Rollback()
	if err := f(&sqliteTransaction{sqlSession{tx}, tx, d.insert}); err != nil {
		return err
	}
	return tx.Commit()
}

func (t *sqliteTransaction) insertJobs(ctx context.Context, jobs []river.InsertManyParams) error {
	_, err := t.insert.InsertManyFastTx(ctx, t.tx, jobs)
	return err
}

// lock: the transaction is the only one that writes.
func (t *sqliteTransaction) lock(context.Context, []string) error { return nil }

// A sqliteLease is a transaction in a second file, whose lock ends with the
// process, also when that is killed.
type sqliteLease struct {
	db *sql.DB
	tx *sql.Tx
}

// lockFile locks a file of its own.
func lockFile(ctx context.Context, file string, wait time.Duration) (*sqliteLease, error) {
	if err := createPrivate(file); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", sqliteName(file, fmt.Sprintf("_pragma=busy_timeout(%d)&_txlock=exclusive", wait.Milliseconds())))
	if err != nil {
		return nil, err
	}
	// The transaction lasts until it is released, and not as long as ctx.
	tx, err := db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		db.Close()
		return nil, err
	}
	return &sqliteLease{db, tx}, nil
}

func isBusy(err error) bool {
	found, ok := errors.AsType[*sqlite.Error](err)
	return ok && found.Code()&0xff == sqlite3.SQLITE_BUSY
}

// hold lets one worker work a file.
func (d *sqliteDatabase) hold(ctx context.Context, _ string) (lease, error) {
	held, err := lockFile(ctx, d.file+".worker", time.Second)
	switch {
	case isBusy(err):
		return nil, target.Usage("outbox: another worker works %s (PostgreSQL takes many)", d.file)
	case err != nil:
		return nil, fmt.Errorf("outbox: lock %s.worker: %w", d.file, err)
	}
	return held, nil
}

func (d *sqliteDatabase) anyWorker(ctx context.Context) (bool, error) {
	free, err := lockFile(ctx, d.file+".worker", 100*time.Millisecond) // another may look, too
	switch {
	case isBusy(err):
		return true, nil
	case err != nil:
		return false, err
	}
	free.release()
	return false, nil
}

func (l *sqliteLease) check(context.Context) error { return nil }

func (l *sqliteLease) release() {
	l.tx.Rollback()
	l.db.Close()
}

// isDead: whoever holds is the only one.
func (d *sqliteDatabase) isDead(context.Context, string) (bool, error) { return true, nil }

// A sqlSession runs statements on a *sql.DB or a *sql.Tx.
type sqlSession struct {
	on interface {
		ExecContext(context.Context, string, ...any) (sql.Result, error)
		QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	}
}

func (s sqlSession) exec(ctx context.Context, statement string, args ...any) (int64, error) {
	result, err := s.on.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (s sqlSession) query(ctx context.Context, row func(scanner) error, statement string, args ...any) error {
	rows, err := s.on.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}
