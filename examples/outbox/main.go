// Outbox takes refunds from a database to a settled outcome, through crashes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/examples/outbox/demo"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
)

const usage = `usage: outbox COMMAND [flags]

Keeps refunds in a database, submits each of them, and knows what became of it,
however often it is killed.

Commands:
  demo     makes up refunds, works them against a sandbox with faults, kills its
           own worker, and compares what it knows with what the sandbox recorded
  migrate  creates the tables, or brings them up to date
  enqueue  takes the refunds of a file
  work     submits what is enqueued, until Ctrl-C or SIGTERM
  status   tells how many refunds are in which state, and what is to be looked at
  resolve  lists the refunds whose outcome is unknown, exports them, imports the
           service's report, and records decisions

"outbox COMMAND -h" tells more. DATABASE_URL names a PostgreSQL database; without
it, the refunds are in the SQLite file of -db.

Exit code: 0 done; 1 failed; 2 usage or configuration; 3 done, and something is to
be looked at; 130 interrupted. "go run" turns all but 0 into 1: build the program
first.
`

// errAttention ends a command that did all, when somebody has to look at something.
var errAttention = errors.New("something is to be looked at")

const exitAttention = 3

func main() {
	os.Exit(run(target.Signals(), os.Args[1:], os.Stdout, os.Stderr, os.LookupEnv))
}

// A process is what all commands talk to.
type process struct {
	stdout, stderr io.Writer
	env            func(string) (string, bool)
}

var commands = map[string]func(p *process, ctx context.Context, args []string) error{
	"demo":    (*process).demo,
	"migrate": (*process).migrate,
	"enqueue": (*process).enqueue,
	"work":    (*process).work,
	"status":  (*process).status,
	"resolve": (*process).resolve,
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer, env func(string) (string, bool)) int {
	if len(args) == 0 {
		return target.Fail(ctx, stderr, target.Usage("outbox: which command? (-h helps)"))
	}
	// The flags of a command are its own: here only -h is known.
	if slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		io.WriteString(stdout, usage)
		return 0
	}
	command, known := commands[args[0]]
	if !known {
		return target.Fail(ctx, stderr, target.Usage("outbox: no such command (-h helps)"))
	}
	err := command(&process{stdout, stderr, env}, ctx, args[1:])
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errAttention):
		return exitAttention
	case errors.Is(err, refundoutbox.ErrTables):
		err = target.Usage("%v", err)
	}
	return target.Fail(ctx, stderr, err)
}

// parse parses the flags of a command, which has no other arguments, and prints its
// help if it is asked for.
func (p *process) parse(flags *flag.FlagSet, usage string, args []string) error {
	err := p.parseWithArguments(flags, usage, args)
	if err == nil && flags.NArg() > 0 {
		return target.Usage("%s takes no arguments besides flags (-h helps)", flags.Name())
	}
	return err
}

func (p *process) parseWithArguments(flags *flag.FlagSet, usage string, args []string) error {
	flags.SetOutput(io.Discard)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(p.stdout, "usage: %s %s\n", flags.Name(), usage)
		flags.SetOutput(p.stdout)
		flags.PrintDefaults()
		return err
	case err != nil:
		return target.Usage("%s: %v (-h helps)", flags.Name(), err)
	}
	return nil
}

// newFlags begins the flags of a command with that of the database.
func newFlags(command string) (flags *flag.FlagSet, file *string) {
	flags = flag.NewFlagSet("outbox "+command, flag.ContinueOnError)
	return flags, flags.String("db", "", "the SQLite `FILE` (default outbox.db)")
}

// open opens the database that -db or the environment names. A SQLite file that is
// missing is created if create says so, with its tables.
func (p *process) open(ctx context.Context, file string, create bool) (*refundoutbox.Database, error) {
	url, set := p.env("DATABASE_URL")
	switch {
	case set && url == "":
		return nil, target.Usage("outbox: DATABASE_URL is empty (for SQLite unset it)")
	case set && file != "":
		return nil, target.Usage("outbox: both -db and DATABASE_URL name a database")
	case set:
		return refundoutbox.OpenPostgres(ctx, url)
	case file == "":
		file = "outbox.db"
	}
	_, err := os.Stat(file)
	missing := errors.Is(err, fs.ErrNotExist)
	if missing && !create {
		return nil, target.Usage("outbox: there is no database %s (enqueue or migrate creates it)", target.Path(file))
	}
	db, err := refundoutbox.OpenSQLite(ctx, file)
	if err == nil && missing {
		err = db.Migrate(ctx)
	}
	return db, err
}

// openChecked is open for all that needs the tables.
func (p *process) openChecked(ctx context.Context, file string, create bool) (*refundoutbox.Database, error) {
	db, err := p.open(ctx, file, create)
	if err != nil {
		return nil, err
	}
	if err := db.Check(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

const migrateUsage = `[-db FILE]

Creates the tables, or brings those of an earlier version up to date, with what is
in them. Stop the workers, make a backup, run it once per release, and start the
workers of the new version. Programs that run it at the same time take turns.
`

func (p *process) migrate(ctx context.Context, args []string) error {
	flags, file := newFlags("migrate")
	if err := p.parse(flags, migrateUsage, args); err != nil {
		return err
	}
	db, err := p.open(ctx, *file, true)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Migrate(ctx)
}

func (p *process) demo(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("outbox demo", flag.ContinueOnError)
	dir := flags.String("dir", "", "where the database and the reports go, and stay: a `DIR`; otherwise they are in\na temporary directory, which is removed at the end")
	if err := p.parse(flags, demo.Usage, args); err != nil {
		return err
	}
	return demo.Run(ctx, p.stdout, p.stderr, *dir)
}
