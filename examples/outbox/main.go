// Outbox takes refunds from a database to a settled answer, through crashes.
package main

import (
	"context"
	"flag"
	"io"
	"os"
	"slices"

	"github.com/carddata/carddata-go/examples/internal/target"
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
  resolve  lists the refunds whose outcome is unknown, and records decisions

"outbox COMMAND -h" tells more. DATABASE_URL names a PostgreSQL database; without
it, the refunds are in the SQLite file of -db.

Exit code: 0 done; 1 failed; 2 usage or configuration; 3 something is to be looked
at: refused lines of an input, or refunds that await a decision; 130 interrupted.
"go run" turns all but 0 into 1: build the program first.
`

// exitAttention is the exit code when all went well but somebody has to look at
// something.
const exitAttention = 3

func main() {
	os.Exit(run(target.Signals(), os.Args[1:], os.Stdout, os.Stderr, os.LookupEnv))
}

// A process is what all commands talk to.
type process struct {
	stdout, stderr io.Writer
	env            func(string) (string, bool)
}

type command func(p *process, ctx context.Context, args []string) (code int, err error)

var commands = map[string]command{
	"demo":    (*process).demo,
	"migrate": (*process).migrate,
	"enqueue": (*process).enqueue,
	"work":    (*process).work,
	"status":  (*process).status,
	"resolve": (*process).resolve,
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer, env func(string) (string, bool)) int {
	// The flags of a command are its own: here only -h is known.
	if len(args) == 0 || slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
		io.WriteString(stdout, usage)
		return 0
	}
	command, known := commands[args[0]]
	if !known {
		return target.Fail(ctx, stderr, target.Usage("outbox: no such command (-h helps)"))
	}
	p := &process{stdout, stderr, env}
	code, err := command(p, ctx, args[1:])
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}
	return code
}

// parse parses the flags of a command. Without ok the program ends with code.
func (p *process) parse(flags *flag.FlagSet, usage string, args []string) (code int, ok bool) {
	return target.Parse(flags, usage, args, p.stdout, p.stderr)
}
