// Outbox keeps refunds in a database and submits them from there: see its README. It is a
// thin user of the module refunds/outbox, which is what a program of yours imports.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "modernc.org/sqlite"

	"github.com/carddata/carddata-go/examples/tools/internal/cli"
	"github.com/carddata/carddata-go/refunds/outbox"
)

const usage = `usage: outbox COMMAND [flags]

  migrate  creates the tables, and brings those of River up to date
  enqueue  takes the refunds of a file
  work     submits what is enqueued, until Ctrl-C or SIGTERM
  status   tells how many refunds are in which state, and what somebody has to look at
  list     lists the refunds that are unknown
  compare  compares the service's report with the refunds, and accepts what it has
  resolve  records somebody's decision about refunds

"outbox COMMAND -h" tells more. DATABASE_URL names a PostgreSQL database; without
it, the refunds are in the SQLite file of -db.

Exit code: 0 done; 1 failed, or not everything was done; 2 usage or configuration;
3 done, and somebody has to look at something; 130 interrupted.
`

// errLook ends a command that is done, and after which somebody has to look at something.
var errLook = errors.New("")

const exitLook = 3

// A command is a process's work.
type command struct {
	stdout, stderr io.Writer
	env            func(string) string
	flags          *flag.FlagSet
	file           string // of -db
	migrates       bool   // -migrate
}

func main() {
	os.Exit(run(cli.Signals(), os.Args[1:], os.Stdout, os.Stderr, os.Getenv))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer, env func(string) string) int {
	err := (&command{stdout: stdout, stderr: stderr, env: env}).run(ctx, args)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case err == errLook:
		return exitLook
	}
	for text := range strings.Lines(err.Error()) { // one for each row
		fmt.Fprintln(stderr, cli.Line(strings.TrimSpace(text)))
	}
	if errors.Is(err, outbox.ErrTables) {
		return cli.ExitUsage
	}
	return cli.Fail(ctx, io.Discard, err)
}

func (c *command) run(ctx context.Context, args []string) error {
	commands := map[string]func(context.Context, []string) error{
		"migrate": c.migrate, "enqueue": c.enqueue, "work": c.work, "status": c.status,
		"list": c.list, "compare": c.compare, "resolve": c.resolve,
	}
	if len(args) == 0 {
		args = []string{"-h"}
	}
	do := commands[args[0]]
	if do == nil {
		io.WriteString(c.stdout, usage)
		if strings.HasPrefix(args[0], "-h") || args[0] == "--help" {
			return nil
		}
		return cli.Usage("outbox: no such command")
	}
	c.flags = flag.NewFlagSet("outbox "+args[0], flag.ContinueOnError)
	c.flags.StringVar(&c.file, "db", "", "the SQLite `FILE` (default outbox.db)")
	return do(ctx, args[1:])
}

// parse parses the flags of a command, and prints its help if it is asked for.
func (c *command) parse(help string, args []string) error {
	c.flags.SetOutput(io.Discard)
	err := c.flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(c.stdout, "usage: %s [flags]\n\n%s\n\n", c.flags.Name(), help)
		c.flags.SetOutput(c.stdout)
		c.flags.PrintDefaults()
		return err
	}
	if err == nil && c.flags.NArg() > 0 && c.flags.Name() != "outbox resolve" && c.flags.Name() != "outbox enqueue" {
		err = errors.New("no arguments besides flags")
	}
	if err != nil {
		return cli.Usage("%s: %w (-h helps)", c.flags.Name(), err)
	}
	return nil
}

// A store is a database and the outbox in it.
type store struct {
	*outbox.Outbox
	close func()
}

// open opens the database that -db or the environment names. A new SQLite file is made if
// create says so.
func (c *command) open(ctx context.Context, create bool) (*store, error) {
	if database := c.env("DATABASE_URL"); database != "" {
		if c.file != "" {
			return nil, cli.Usage("outbox: both -db and DATABASE_URL name a database")
		}
		pool, err := pgxpool.New(ctx, database)
		if err != nil {
			return nil, cli.Usage("outbox: DATABASE_URL is no connection string of PostgreSQL") // err could hold the password
		}
		box, err := outbox.OpenPostgres(pool)
		return &store{box, pool.Close}, err
	}
	file := cmp.Or(c.file, "outbox.db")
	if _, err := os.Stat(file); err != nil && !create {
		return nil, cli.Usage("outbox: there is no database %s: create it by %q", file, strings.TrimSpace("outbox migrate "+map[bool]string{true: "-db " + file}[c.file != ""]))
	}
	created, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600) // for its owner only
	if err != nil {
		return nil, err
	}
	created.Close()
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+
		"?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	box, err := outbox.OpenSQLite(db)
	return &store{box, func() { db.Close() }}, err
}

// canMigrate gives a command the flag -migrate.
func (c *command) canMigrate() {
	c.flags.BoolVar(&c.migrates, "migrate", false, "first create the tables, and an SQLite file that is not there, as the command migrate does")
}

// openToWork opens the database, and migrates it if -migrate says so.
func (c *command) openToWork(ctx context.Context) (*store, error) {
	s, err := c.open(ctx, c.migrates)
	if err == nil && c.migrates {
		if err = s.Migrate(ctx); err != nil {
			s.close()
		}
	}
	return s, err
}

func (c *command) migrate(ctx context.Context, args []string) error {
	if err := c.parse("Creates the tables, and brings those of River up to date. Stop the workers, and\nmake a backup before.", args); err != nil {
		return err
	}
	s, err := c.open(ctx, true)
	if err != nil {
		return err
	}
	defer s.close()
	return s.Migrate(ctx)
}

// printTable prints rows of cells.
func printTable(w io.Writer, rows [][]any) {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer out.Flush()
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(out, "\t")
			}
			fmt.Fprintf(out, "%.80s", cli.Line(fmt.Sprint(cell)))
		}
		fmt.Fprintln(out)
	}
}
