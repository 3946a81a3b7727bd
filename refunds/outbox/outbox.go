package outbox

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivermigrate"
)

// An Outbox is the refunds and their queue in one database. [OpenPostgres] and [OpenSQLite]
// make one. Its methods may be called at the same time. Close the pool or the handle that
// it was opened with when no method runs any more.
type Outbox struct {
	session            // each statement is a transaction of its own
	schema      string // of River's tables; "": they are where the others are
	jobArgs     string // the function that makes the JSON of a job
	transact    func(ctx context.Context, f func(session) error) error
	inTurn      func(ctx context.Context, f func() error) error // one program at a time
	durable     func(ctx context.Context) error                 // fails if a commit can be lost
	newQueue    func(*river.Config) (queue, error)
	riverTables func(context.Context, rivermigrate.Direction, *rivermigrate.MigrateOpts) (*rivermigrate.MigrateResult, error)
	migrations  *goose.Provider

	checked, riverChecked atomic.Bool
}

// A session runs statements on a database or in a transaction. Parameters are $1, $2, ….
type session interface {
	// exec returns how many rows were changed.
	exec(ctx context.Context, statement string, args ...any) (int64, error)
	// query reads the rows of a result into what slice points to: structs with a field
	// for each column, or the values of the only column.
	query(ctx context.Context, slice any, statement string, args ...any) error
}

// A queue is River's client of a worker, for any type of transaction.
type queue interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
}

// ErrTables is the error of every method but Migrate when the tables are missing or have
// another version: call [Outbox.Migrate], or use the version of this module that they
// are of. A database that does not answer fails with its driver's error instead.
var ErrTables = errors.New("outbox: the tables")

//go:embed migrations
var files embed.FS

// quiet takes what River logs about migrations.
var quiet = slog.New(slog.DiscardHandler)

// riverSchema is where PostgreSQL has River's tables of this package. Programs that share
// River's tables share its leader, which discards long-running jobs of kinds that it
// does not know.
const riverSchema = "outbox"

// open prepares what both databases do by River's driver and goose's dialect.
func open[TTx any](o *Outbox, driver riverdriver.Driver[TTx], db *sql.DB, dialect goose.Dialect) error {
	o.newQueue = func(config *river.Config) (queue, error) {
		config.Schema = o.schema
		return river.NewClient(driver, config)
	}
	own, err := fs.Sub(files, "migrations/"+string(dialect))
	if err != nil {
		return err
	}
	o.migrations, err = goose.NewProvider(dialect, db, own, goose.WithTableName("outbox_migration"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	tables, err := rivermigrate.New(driver, &rivermigrate.Config{Schema: o.schema, Logger: quiet})
	if err == nil {
		o.riverTables = tables.Migrate
	}
	return err
}

// Migrate creates the tables, or brings those of an earlier version up to date. Programs
// that migrate at the same time take turns. Stop the workers and make a backup before you
// migrate tables that are in use. In PostgreSQL, the first call needs the right to create
// a schema.
func (o *Outbox) Migrate(ctx context.Context) error {
	return o.inTurn(ctx, func() error {
		if o.schema != "" {
			if _, err := o.exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+o.schema); err != nil {
				return fmt.Errorf("outbox: migrate: %w", err)
			}
		}
		if _, err := o.riverTables(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return fmt.Errorf("outbox: migrate the tables of River: %w", err)
		}
		if _, err := o.migrations.Up(ctx); err != nil {
			return fmt.Errorf("outbox: migrate: %w", err)
		}
		return nil
	})
}

// check fails with ErrTables unless the tables are those of this version. It looks once.
func (o *Outbox) check(ctx context.Context) error {
	err := o.checkOwn(ctx, o)
	if err == nil && !o.riverChecked.Load() {
		var missing *rivermigrate.MigrateResult
		missing, err = o.riverTables(ctx, rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{DryRun: true})
		if err == nil && len(missing.Versions) > 0 {
			err = fmt.Errorf("%w of River are not up to date: migrate them", ErrTables)
		}
		o.riverChecked.Store(err == nil)
	}
	if err != nil && !errors.Is(err, ErrTables) {
		return fmt.Errorf("outbox: check the version of the tables: %w", err)
	}
	return err
}

// checkOwn is check without River's tables, which a transaction on the only connection of
// a pool could not look at.
func (o *Outbox) checkOwn(ctx context.Context, on session) error {
	if o.checked.Load() {
		return nil
	}
	sources := o.migrations.ListSources()
	want := sources[len(sources)-1].Version
	found, err := one[int64](ctx, on, `SELECT COALESCE(MAX(version_id), 0) FROM outbox_migration`)
	switch {
	case noTable(err):
		return fmt.Errorf("%w are missing, or of a version before migrations were numbered: migrate them (%w)", ErrTables, err)
	case err != nil:
		return err
	case found != want:
		return fmt.Errorf("%w have version %d, and this program needs %d: migrate them, or use a newer program", ErrTables, found, want)
	}
	o.checked.Store(true)
	return nil
}

// noTable tells whether a statement failed because its table is not there, with any driver.
func noTable(err error) bool {
	if postgres, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		return postgres.SQLState() == "42P01"
	}
	return err != nil && strings.Contains(err.Error(), "no such table") // of SQLite, which has no code for it
}

// river names a table of River's.
func (o *Outbox) river(table string) string {
	return strings.TrimPrefix(o.schema+".river_"+table, ".")
}

// all returns the rows of a result.
func all[T any](ctx context.Context, s session, statement string, args ...any) (rows []T, err error) {
	err = s.query(ctx, &rows, statement, args...)
	return rows, err
}

// one returns the row of a result, or the zero value if it has none.
func one[T any](ctx context.Context, s session, statement string, args ...any) (row T, err error) {
	rows, err := all[T](ctx, s, statement, args...)
	if len(rows) > 0 {
		row = rows[0]
	}
	return row, err
}

// Times are text in both databases: they sort, and people can read them.
const timeLayout = "2006-01-02T15:04:05.000Z"

func timeText(t time.Time) string { return t.UTC().Format(timeLayout) }

// parseTime reads a time of the database. It returns the zero time for "".
func parseTime(text string) time.Time {
	t, _ := time.Parse(timeLayout, text)
	return t
}

// riverTime is how River's tables have a time in SQLite; PostgreSQL reads it, too.
func riverTime(t time.Time) string { return t.UTC().Format("'2006-01-02 15:04:05Z'") }
