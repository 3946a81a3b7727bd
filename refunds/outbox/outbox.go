package outbox

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivermigrate"
)

// An Outbox is the refunds and their queue in one database. [OpenPostgres] and [OpenSQLite]
// make one. Its methods may be called at the same time. Close the pool or the handle that
// it was opened with after [Outbox.Close], when no method runs any more.
type Outbox struct {
	session               // each statement is a transaction of its own
	schema        string  // of River's tables; "": they are where the others are
	jobArgs       string  // the function that makes the JSON of a job
	key           string  // the type of a key that counts
	version       version // of the tables that this program needs
	transact      func(ctx context.Context, f func(session) error) error
	fill          func(ctx context.Context, tx session, rows []booking) error // the temporary table of bookings
	inTurn        func(ctx context.Context, f func() error) error             // one program at a time
	durable       func(ctx context.Context) error                             // fails if a commit can be lost
	newQueue      func(*river.Config) (queue, error)
	migrateRiver  func(ctx context.Context) error
	tablesChecked atomic.Bool
	usable        atomic.Bool // what Run and Submit need was checked

	closing  context.Context // ends with Close
	close    context.CancelFunc
	mu       sync.Mutex
	attempts map[int64]*attempt // of Submit, by their rows
}

// A session runs statements on a database or in a transaction. Parameters are $1, $2, ….
type session interface {
	// exec returns how many rows were changed.
	exec(ctx context.Context, statement string, args ...any) (int64, error)
	// query reads the rows of a result into what slice points to: structs with a field
	// for each column, or the values of the only column.
	query(ctx context.Context, slice any, statement string, args ...any) error
	// clock is an expression for the time by the database's clock, plus d, as timeText has it.
	clock(d time.Duration) string
}

// A queue is River's client of a worker, for any type of transaction.
type queue interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
}

// ErrTables is the error of the methods when the tables are missing, and of all but Enqueue
// when they have another version: call [Outbox.Migrate], or use the version of this module
// that they are of. A database that does not answer fails with its driver's error instead.
var ErrTables = errors.New("outbox: the tables")

//go:embed tables.sql
var tables string

// A version is that of this package's tables and of River's.
type version struct{ Own, River int }

// ownVersion is the version that tables.sql makes, one step after the other.
const ownVersion = 3

// quiet takes what River logs about migrations.
var quiet = slog.New(slog.DiscardHandler)

// riverSchema is where PostgreSQL has River's tables of this package. Programs that share
// River's tables share its leader, which discards long-running jobs of kinds that it
// does not know.
const riverSchema = "outbox"

// open prepares what both databases do by River's driver.
func open[TTx any](o *Outbox, driver riverdriver.Driver[TTx]) error {
	o.closing, o.close = context.WithCancel(context.Background())
	o.attempts = make(map[int64]*attempt)
	o.newQueue = func(config *river.Config) (queue, error) {
		config.Schema = o.schema
		return river.NewClient(driver, config)
	}
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Schema: o.schema, Logger: quiet})
	if err != nil {
		return err
	}
	o.migrateRiver = func(ctx context.Context) error {
		_, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
		return err
	}
	all := migrator.AllVersions()
	o.version = version{ownVersion, all[len(all)-1].Version}
	return nil
}

// Migrate creates the tables, and brings those of River up to date. In PostgreSQL, programs
// that migrate at the same time take turns, and the first call needs the right to create a
// schema. Stop the workers and make a backup before you migrate tables that are in use.
func (o *Outbox) Migrate(ctx context.Context) error {
	err := o.inTurn(ctx, func() error {
		found, err := one[version](ctx, o, `SELECT own, river FROM outbox_version`)
		if err != nil && !noTable(err) {
			return err
		}
		if found.Own > o.version.Own || found.River > o.version.River {
			return o.differ(found)
		}
		if o.schema != "" {
			if _, err := o.exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+o.schema); err != nil {
				return err
			}
		}
		if err := o.migrateRiver(ctx); err != nil {
			return err
		}
		return o.transact(ctx, func(tx session) error {
			for _, step := range strings.Split(tables, "\n-- Version ")[found.Own:] {
				if _, err := tx.exec(ctx, strings.ReplaceAll("-- "+step, "NUMBER,", o.key+",")); err != nil {
					return err
				}
			}
			if _, err := tx.exec(ctx, `DELETE FROM outbox_version`); err != nil {
				return err
			}
			_, err := tx.exec(ctx, `INSERT INTO outbox_version (own, river) VALUES ($1, $2)`, o.version.Own, o.version.River)
			return err
		})
	})
	return failed("migrate", err)
}

// check fails with ErrTables unless the tables are those of this version. It looks once.
func (o *Outbox) check(ctx context.Context) error {
	if o.tablesChecked.Load() {
		return nil
	}
	found, err := one[version](ctx, o, `SELECT own, river FROM outbox_version`)
	switch {
	case noTable(err):
		return missing(err)
	case err != nil:
		return fmt.Errorf("outbox: check the version of the tables: %w", err)
	case found != o.version:
		return o.differ(found)
	}
	o.tablesChecked.Store(true)
	return nil
}

// ready fails if a refund cannot be sent from this database. It looks once.
func (o *Outbox) ready(ctx context.Context) error {
	if o.usable.Load() {
		return nil
	}
	err := errors.Join(o.check(ctx), o.durable(ctx))
	o.usable.Store(err == nil)
	return err
}

// failed names the operation in an error that does not say it.
func failed(operation string, err error) error {
	for _, own := range []error{nil, ErrTables, ErrAmountChanged, ErrNoRefund} {
		if errors.Is(err, own) {
			return err
		}
	}
	return fmt.Errorf("outbox: %s: %w", operation, err)
}

func missing(err error) error {
	return fmt.Errorf("%w are missing, or of an unreleased version: migrate (%w)", ErrTables, err)
}

func (o *Outbox) differ(found version) error {
	return fmt.Errorf("%w have version %d and River's %d, and this program needs %d and %d: migrate them, or use a newer program",
		ErrTables, found.Own, found.River, o.version.Own, o.version.River)
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

// Times are text in both databases: they sort, and people can read them. All that is compared is
// from the database's clock, because those of the workers' machines can differ.
const timeLayout = "2006-01-02T15:04:05.000Z"

func timeText(t time.Time) string { return t.UTC().Format(timeLayout) }

// readClock returns the time by the database's clock.
func readClock(ctx context.Context, s session) (time.Time, error) {
	text, err := one[string](ctx, s, `SELECT `+s.clock(0))
	return parseTime(text), err
}

// parseTime reads a time of the database. It returns the zero time for "".
func parseTime(text string) time.Time {
	t, _ := time.Parse(timeLayout, text)
	return t
}
