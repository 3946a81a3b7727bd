// Outbox takes refunds from a database to a settled outcome, through crashes.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/examples/outbox/demo"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
)

const usage = `usage: outbox COMMAND [flags]

  demo     runs the other commands against a sandbox with faults, and kills its worker
  migrate  creates the tables, or brings those of an earlier version up to date
  enqueue  takes the refunds of a file
  work     submits what is enqueued, until Ctrl-C or SIGTERM
  status   tells how many refunds are in which state, and what is to be looked at
  resolve  lists the refunds whose outcome is unknown, exports them, imports the
           service's report, and records decisions

"outbox COMMAND -h" tells more. DATABASE_URL names a PostgreSQL database; without
it, the refunds are in the SQLite file of -db.

Exit code: 0 done; 1 failed; 2 usage or configuration; 3 done, and something is to
be looked at; 130 interrupted.
`

// An exit ends a command that has said what is to be said.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// exitAttention ends a command that did all, when somebody has to look at something.
const exitAttention exit = 3

func main() {
	os.Exit(run(target.Signals(), os.Args[1:], os.Stdout, os.Stderr, os.LookupEnv))
}

// A process is a command that runs.
type process struct {
	stdout *bufio.Writer // keeps its first error
	stderr io.Writer
	env    func(string) (string, bool)
	flags  *flag.FlagSet
	file   string // of -db
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
	p := &process{stdout: bufio.NewWriter(stdout), stderr: stderr, env: env, flags: flag.NewFlagSet("outbox "+args[0], flag.ContinueOnError)}
	p.flags.StringVar(&p.file, "db", "", "the SQLite `FILE` (default outbox.db)")
	err := command(p, ctx, args[1:])
	if failed := p.stdout.Flush(); failed != nil {
		err = failed
	}
	if code, ended := errors.AsType[exit](err); ended || err == nil {
		return int(code)
	}
	if errors.Is(err, refundoutbox.ErrTables) {
		err = target.Usage("%v", err)
	}
	return target.Fail(ctx, stderr, err)
}

// parse parses the flags of a command, and prints its help if it is asked for.
func (p *process) parse(usage string, args []string) error {
	var flags strings.Builder
	p.flags.SetOutput(&flags)
	p.flags.PrintDefaults()
	help := fmt.Sprintf("usage: %s [flags]\n\n%s\n\n%s", p.flags.Name(), usage, &flags)
	if code, ok := target.Parse(p.flags, help, args, p.stdout, p.stderr); !ok {
		return exit(code)
	}
	if p.flags.NArg() > 0 && p.flags.Name() != "outbox resolve" { // which takes rows
		return target.Usage("%s takes no arguments besides flags (-h helps)", p.flags.Name())
	}
	return nil
}

// open opens the database that -db or the environment names, and checks its tables or
// migrates them. A SQLite file that is missing is created if create says so.
func (p *process) open(ctx context.Context, create, migrate bool) (db *refundoutbox.Database, err error) {
	url, set := p.env("DATABASE_URL")
	switch {
	case set && url == "":
		return nil, target.Usage("outbox: DATABASE_URL is empty (for SQLite unset it)")
	case set && p.file != "":
		return nil, target.Usage("outbox: both -db and DATABASE_URL name a database")
	case set:
		db, err = refundoutbox.OpenPostgres(ctx, url)
	default:
		file := cmp.Or(p.file, "outbox.db")
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			if !create {
				return nil, target.Usage("outbox: there is no database %s (enqueue or migrate creates it)", target.Path(file))
			}
			migrate = true
		}
		db, err = refundoutbox.OpenSQLite(ctx, file)
	}
	if err != nil {
		return nil, err
	}
	prepare := db.Check
	if migrate {
		prepare = db.Migrate
	}
	if err := prepare(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

func (p *process) migrate(ctx context.Context, args []string) error {
	if err := p.parse("Creates the tables, or brings those of an earlier version up to date. Stop the workers, and make a backup before.", args); err != nil {
		return err
	}
	db, err := p.open(ctx, true, true)
	if err == nil {
		db.Close()
	}
	return err
}

func (p *process) demo(ctx context.Context, args []string) error {
	if err := p.parse(demo.Usage, args); err != nil {
		return err
	}
	return demo.Run(ctx, p.stdout, p.stderr, p.file)
}
