package main

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"time"

	"github.com/riverqueue/river"

	"github.com/carddata/carddata-go/examples/internal/target"
)

// A session runs statements. Both databases number their parameters $1, $2, …
type session interface {
	// exec returns how many rows were changed.
	exec(ctx context.Context, statement string, args ...any) (int64, error)
	// query calls row for each row of the result.
	query(ctx context.Context, row func(scan scanner) error, statement string, args ...any) error
}

type scanner func(columns ...any) error

// A transaction takes a team's own rows, refunds and River's jobs together.
type transaction interface {
	session
	insertJobs(ctx context.Context, jobs []river.InsertManyParams) error
	// lock keeps other transactions from enqueueing records with these names.
	lock(ctx context.Context, names []string) error
}

// A database holds the refunds and the queue. As a session, each statement is a
// transaction of its own.
type database interface {
	session
	transact(ctx context.Context, f func(transaction) error) error
	migrate(ctx context.Context) error
	// queue returns River's client for a worker.
	queue(config *river.Config) (queue, error)
	// hold says that the worker lives, until it is released or the process ends.
	hold(ctx context.Context, worker string) (lease, error)
	// isDead tells whether a worker that once held a lease does so no more.
	isDead(ctx context.Context, worker string) (bool, error)
	// anyWorker tells whether one holds a lease.
	anyWorker(ctx context.Context) (bool, error)
	close()
}

// A queue is River's client, whatever its transactions are.
type queue interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	JobList(ctx context.Context, params *river.JobListParams) (*river.JobListResult, error)
}

// A lease is a worker's sign of life.
type lease interface {
	check(ctx context.Context) error // fails when others may take the worker for dead
	release()
}

// A location says where the database is.
type location struct {
	file   string
	create bool // the SQLite file, if it is missing
}

const defaultFile = "outbox.db"

func (l *location) flag(flags *flag.FlagSet) { flags.StringVar(&l.file, "db", "", "") }

// open opens the database that the flag or the environment names.
func (p *process) open(ctx context.Context, l location) (database, error) {
	url, set := p.env("DATABASE_URL")
	switch {
	case set && url == "":
		return nil, target.Usage("outbox: DATABASE_URL is empty (for SQLite unset it)")
	case set && l.file != "":
		return nil, target.Usage("outbox: both -db and DATABASE_URL name a database")
	case set:
		return openPostgres(ctx, url)
	case l.file == "":
		l.file = defaultFile
	}
	if _, err := os.Stat(l.file); errors.Is(err, fs.ErrNotExist) && !l.create {
		return nil, target.Usage("outbox: there is no database %s (enqueue or migrate creates it)", l.file)
	}
	return openSQLite(ctx, l.file)
}

// migrate is the command.
func (p *process) migrate(ctx context.Context, args []string) (int, error) {
	const usage = `usage: outbox migrate [-db FILE]

Creates the tables, or brings them up to date. Enqueue does so by itself in a
SQLite file. In PostgreSQL, run it once per release, and one at a time.
`
	at := location{create: true}
	flags := flag.NewFlagSet("outbox migrate", flag.ContinueOnError)
	at.flag(flags)
	if code, ok := p.parse(flags, usage, args); !ok {
		return code, nil
	}
	if flags.NArg() > 0 {
		return 0, target.Usage("outbox: migrate takes no arguments")
	}
	db, err := p.open(ctx, at)
	if err != nil {
		return 0, err
	}
	defer db.close()
	return 0, db.migrate(ctx)
}

// Times are text in both databases: they sort, and are read without a tool.
const timeLayout = "2006-01-02T15:04:05.000Z"

func timeText(t time.Time) string { return t.UTC().Format(timeLayout) }

func parseTime(text string) time.Time {
	t, _ := time.Parse(timeLayout, text)
	return t
}
