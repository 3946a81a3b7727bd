package refundoutbox

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivermigrate"
)

// A Session runs statements. Both databases number their parameters $1, $2, ….
type Session interface {
	// Exec returns how many rows were changed.
	Exec(ctx context.Context, statement string, args ...any) (int64, error)
	// Select reads the rows of a result into what slice points to: structs, with a field
	// for each column, or the values of the only one.
	Select(ctx context.Context, slice any, statement string, args ...any) error
}

// A Tx is a transaction, which takes a team's own rows, refunds and River's jobs
// together. PostgresTx and SQLiteTx make one of the driver's.
type Tx struct {
	Session
	insertJobs func(ctx context.Context, jobs []river.InsertManyParams) error
	// lock keeps other transactions from enqueueing records with these names; nil: no
	// other one writes at the same time.
	lock func(ctx context.Context, names []string) error
}

// A Database holds the refunds and River's queue. As a Session, each statement is a
// transaction of its own.
type Database struct {
	Session
	schema     string // of River's tables; "": they are where the others are
	client     any    // River's, which inserts jobs
	newQueue   func(*river.Config) (queue, error)
	tables     func(context.Context, rivermigrate.Direction, *rivermigrate.MigrateOpts) (*rivermigrate.MigrateResult, error) // River's
	migrations *goose.Provider
	inTurn     func(ctx context.Context, f func() error) error // one program at a time

	Transact func(ctx context.Context, f func(Tx) error) error // commits what f did, unless f returns an error
	Close    func()
}

// A queue is River's client of a worker, whatever its transactions are.
type queue interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	QueuePause(ctx context.Context, name string, opts *river.QueuePauseOpts) error
	QueueResume(ctx context.Context, name string, opts *river.QueuePauseOpts) error
}

// The migrations of this program's own tables. River's tables have migrations of
// their own.
//
//go:embed migrations
var files embed.FS

// ErrTables is what Check returns when the tables are not those of this program.
var ErrTables = errors.New("outbox: the tables")

// quiet takes what River logs about migrations.
var quiet = slog.New(slog.DiscardHandler)

// open prepares what both databases do by River's driver and goose's dialect.
func open[TTx any](d *Database, driver riverdriver.Driver[TTx], db *sql.DB, dialect goose.Dialect) error {
	d.newQueue = func(config *river.Config) (queue, error) {
		config.Schema = d.schema
		return river.NewClient(driver, config)
	}
	own, err := fs.Sub(files, "migrations/"+string(dialect))
	if err == nil {
		d.migrations, err = goose.NewProvider(dialect, db, own, goose.WithTableName("outbox_migration"), goose.WithDisableGlobalRegistry(true))
	}
	if err == nil {
		d.client, err = river.NewClient(driver, &river.Config{Schema: d.schema, Logger: quiet})
	}
	if err != nil {
		return err
	}
	tables, err := rivermigrate.New(driver, &rivermigrate.Config{Schema: d.schema, Logger: quiet})
	if err == nil {
		d.tables = tables.Migrate
	}
	return err
}

// newTx makes a Tx of a driver's transaction.
func newTx[TTx any](d *Database, session Session, tx TTx) Tx {
	client := d.client.(*river.Client[TTx])
	return Tx{Session: session, insertJobs: func(ctx context.Context, jobs []river.InsertManyParams) error {
		_, err := client.InsertManyFastTx(ctx, tx, jobs)
		return err
	}}
}

// Migrate creates the tables, or brings them up to date: River's, and then this
// program's.
func (d *Database) Migrate(ctx context.Context) error {
	return d.inTurn(ctx, func() error {
		if d.schema != "" {
			if _, err := d.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+d.schema); err != nil {
				return err
			}
		}
		if _, err := d.tables(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return fmt.Errorf("outbox: migrate the tables of River: %w", err)
		}
		if _, err := d.migrations.Up(ctx); err != nil {
			return fmt.Errorf("outbox: migrate: %w", err)
		}
		return nil
	})
}

// Check fails with ErrTables unless the tables are those of this program. It
// changes nothing.
func (d *Database) Check(ctx context.Context) error {
	sources := d.migrations.ListSources()
	want := sources[len(sources)-1].Version
	found, err := one[int64](ctx, d, `SELECT COALESCE(MAX(version_id), 0) FROM outbox_migration`)
	switch {
	case err != nil:
		return fmt.Errorf("%w are missing, or of a version before migrations were numbered: run outbox migrate (%w)", ErrTables, err)
	case found != want:
		return fmt.Errorf("%w have version %d, and this program needs %d: run outbox migrate, or a newer program", ErrTables, found, want)
	}
	missing, err := d.tables(ctx, rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{DryRun: true})
	if err == nil && len(missing.Versions) > 0 {
		err = fmt.Errorf("%w of River are not up to date: run outbox migrate", ErrTables)
	}
	return err
}

// all returns the rows of a result.
func all[T any](ctx context.Context, db Session, statement string, args ...any) (rows []T, err error) {
	err = db.Select(ctx, &rows, statement, args...)
	return rows, err
}

// one returns the row of a result, or the zero value if it has none.
func one[T any](ctx context.Context, db Session, statement string, args ...any) (row T, err error) {
	rows, err := all[T](ctx, db, statement, args...)
	if len(rows) > 0 {
		row = rows[0]
	}
	return row, err
}

// Times are text in both databases: they sort, and are read without a tool.
const timeLayout = "2006-01-02T15:04:05.000Z"

func timeText(t time.Time) string { return t.UTC().Format(timeLayout) }

func parseTime(text string) time.Time {
	t, _ := time.Parse(timeLayout, text)
	return t
}
