// Bulk adds what is known of cards to the rows of a file of any size.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/internal/sandbox"
)

const usage = `usage: bulk -in FILE -out FILE [flags]

Looks up the card of every row of a file and writes the rows with columns about
the card appended. Killed at any moment, it goes on with -resume. Without -in, it
makes up 200,000 rows, runs them against a sandbox, and removes them.

FILE may be "-", standard input or output. A suffix .gz or .zst says that a file
is compressed, or is to be. With -out - there is nothing to resume, the report goes
to standard error, and -failed or -keep-failed is needed.

  -demo DIR      makes up the 200,000 rows in DIR, and leaves them there with what
                 comes of them

Input, by its extension unless a flag says so:
  -column NAME   CSV with a header; the column that holds the card ("card")
  -delimiter C   the character between the fields of CSV, or "tab" (a comma; a tab
                 for .tsv)
  -field NAME    NDJSON; the member that holds the card ("card")
  -lines         one card per line; the output is CSV

Output:
  -columns LIST  members of the service's card object, separated by commas; "error"
                 is the service's word on a card that it does not know, NAME=MEMBER
                 renames a column. The default is
                 ` + defaultColumns + `
  -failed FILE   rows without an answer, by line, with masked cards (OUT.failed.csv)
  -keep-failed   rows without an answer stay in the output, with empty columns and
                 the reason in the column "error"; only rows that cannot be read
                 go to the failed file
  -report FILE   the report as JSON, in place of an earlier one
  -resume        goes on where the same command ended. The files of a run are
                 refused without it
  -strict        ends at the first row without an answer
  -retry-failed FILE
                 takes only the rows of the input that a failed file names. The
                 output is a new one
  -give-up DURATION
                 how long the run pauses while the service fails, before it ends; it can
                 then be resumed (30m)

Requests:
  -concurrency N  requests in flight (16)
  -rate N         most requests a second
  -enhanced       asks for the enhanced lookup
  -prefix N       sends the first N digits of card numbers, at most 11, and no more
  -keep-separators
                  sends "4111 1111-..." as it stands, and not without its spaces
                  and dashes
  -ranges         assumes that the service answers all numbers between bin_min and
                  bin_max of an answer alike. This saves most requests for card
                  numbers; the service does not document it

CARDDATA_BIN_URL and CARDDATA_API_KEY name the service and the credential.
If neither is set, a sandbox with invented data answers.

Exit code: 0 every row is in the output, even if its card is unknown; 1 failed;
2 usage, configuration, or another process on the same output; 3 done, but some rows
are in the failed file; 4 the service does not answer, the run can be resumed;
130 interrupted.
"go run" turns all but 0 into 1: build the program first.
`

const (
	exitFailedRows = 3
	exitUnanswered = 4
)

var settings = target.Settings{URL: "CARDDATA_BIN_URL", Required: []string{"CARDDATA_API_KEY"}}

// A config is what the command line says.
type config struct {
	in, out, failed, report string
	retryFailed, demoDir    string
	column, field, columns  string
	delimiter               string
	lines, resume, strict   bool
	enhanced, ranges        bool
	keepSeparators          bool
	keepFailed              bool
	concurrency, prefix     int
	giveUp                  time.Duration
	live                    bool
	rate                    float64
}

func (c *config) statePath() string { return c.out + ".state" }

func main() {
	os.Exit(run(target.Signals(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv))
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) (string, bool)) int {
	var c config
	flags := c.flags()
	if code, ok := target.Parse(flags, usage, args, stdout, stderr); !ok {
		return code
	}
	if err := c.check(flags.NArg()); err != nil {
		return target.Fail(ctx, stderr, err)
	}
	service, err := target.Open(stderr, env, settings)
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}
	defer service.Close()
	c.live = service.Live()
	if service.Engine != nil {
		service.Engine.SetLookup(sandbox.SyntheticCard)
		fmt.Fprintln(stderr, "its cards are made up for any number, and not those of examples/lookup")
	}
	demo := c.in == ""
	if demo {
		if service.Live() {
			return target.Fail(ctx, stderr, target.Usage("bulk: -in is missing (-h helps)"))
		}
		remove, err := c.demo(stderr)
		defer remove()
		if err != nil {
			return target.Fail(ctx, stderr, err)
		}
	}
	r, err := enrich(ctx, &c, service, stdin, stdout, stderr)
	if r != nil {
		// The report tells how far the rows came, also where they did not all.
		if c.out == standard {
			stdout = stderr
		}
		if reportErr := r.publish(stdout, c.report); reportErr != nil {
			err = errors.Join(err, reportErr)
		}
	}
	switch {
	case err != nil:
		code := target.Fail(ctx, stderr, err)
		if r != nil && !demo && c.out != standard {
			fmt.Fprintln(stderr, "to go on, run the same command with -resume")
		}
		if code == target.ExitFailed && errors.Is(err, errUnanswered) {
			code = exitUnanswered
		}
		return code
	case r.Failed > r.Kept:
		fmt.Fprintln(stderr, "to ask again for the failed rows, give their file as -retry-failed, and another -out")
		return exitFailedRows
	}
	return 0
}

func (c *config) flags() *flag.FlagSet {
	f := flag.NewFlagSet("bulk", flag.ContinueOnError)
	for name, value := range map[string]*string{
		"in": &c.in, "out": &c.out, "failed": &c.failed, "report": &c.report, "column": &c.column, "field": &c.field,
		"retry-failed": &c.retryFailed, "delimiter": &c.delimiter, "demo": &c.demoDir,
	} {
		f.StringVar(value, name, "", "")
	}
	f.StringVar(&c.columns, "columns", defaultColumns, "")
	for name, value := range map[string]*bool{
		"lines": &c.lines, "resume": &c.resume, "strict": &c.strict, "enhanced": &c.enhanced, "ranges": &c.ranges,
		"keep-separators": &c.keepSeparators, "keep-failed": &c.keepFailed,
	} {
		f.BoolVar(value, name, false, "")
	}
	f.IntVar(&c.concurrency, "concurrency", 16, "")
	f.IntVar(&c.prefix, "prefix", 0, "")
	f.DurationVar(&c.giveUp, "give-up", 30*time.Minute, "")
	f.Float64Var(&c.rate, "rate", 0, "")
	return f
}

// check refuses what cannot be meant, before anything is created or sent.
func (c *config) check(arguments int) error {
	set := 0
	for _, given := range []bool{c.column != "", c.field != "", c.lines} {
		if given {
			set++
		}
	}
	switch {
	case arguments > 0:
		return target.Usage("bulk: no arguments besides flags (-h helps)")
	case set > 1:
		return target.Usage("bulk: -column, -field and -lines exclude each other")
	case c.in == "" && (c.out != "" || c.resume || c.retryFailed != "" || set > 0):
		return target.Usage("bulk: -in is missing (-h helps)")
	case c.in != "" && c.demoDir != "":
		return target.Usage("bulk: -demo makes up the input, it goes without -in")
	case c.in != "" && c.out == "":
		return target.Usage("bulk: -out is missing (-h helps)")
	case c.out == standard && c.resume:
		return target.Usage("bulk: what went to standard output cannot be resumed")
	case c.out == standard && c.failed == "" && !c.keepFailed:
		return target.Usage("bulk: -out - needs -failed FILE or -keep-failed: rows without an answer would be lost")
	case c.concurrency < 1, c.giveUp <= 0, !(c.rate >= 0):
		return target.Usage("bulk: -concurrency must be at least 1, -rate not negative, and -give-up a time")
	case c.prefix < 0, c.prefix >= minCardNumber:
		return target.Usage("bulk: -prefix must be from 1 to %d: more digits may be a card number", minCardNumber-1)
	}
	if info, err := os.Stat(c.report); err == nil && !info.Mode().IsRegular() {
		return target.Usage("bulk: %s is no file that a report could replace", target.Path(c.report))
	}
	if c.in == "" {
		return nil
	}
	if _, err := c.delimiterByte(); err != nil {
		return err
	}
	var files []string
	if c.out != standard {
		c.failed = cmp.Or(c.failed, c.out+".failed.csv")
		files = append(files, c.statePath())
	}
	for _, path := range []string{c.in, c.out, c.failed, c.report, c.retryFailed} {
		if path != "" && path != standard {
			files = append(files, path)
		}
	}
	for i, path := range files {
		if slices.ContainsFunc(files[:i], func(other string) bool { return sameFile(path, other) }) {
			return target.Usage("bulk: two of the files are the same: %s", target.Path(path))
		}
	}
	return nil
}

// format chooses the format of the input.
func (c *config) format(columns []column) (format, error) {
	delimiter, err := c.delimiterByte()
	if err != nil {
		return nil, err
	}
	switch extension := filepath.Ext(unpackedName(c.in)); {
	case c.lines, c.column == "" && c.field == "" && extension == ".txt":
		return &linesFormat{columns: columns}, nil
	case c.column != "", c.field == "" && (extension == ".csv" || extension == ".tsv"):
		return &csvFormat{column: cmp.Or(c.column, "card"), columns: columns, delimiter: delimiter}, nil
	case c.field != "", extension == ".ndjson", extension == ".jsonl":
		return newNDJSONFormat(cmp.Or(c.field, "card"), columns), nil
	}
	return nil, target.Usage("bulk: the input's format does not show in its name: give -column, -field or -lines")
}

// delimiterByte is what stands between the fields of CSV.
func (c *config) delimiterByte() (byte, error) {
	switch d := c.delimiter; {
	case d == "" && filepath.Ext(unpackedName(c.in)) == ".tsv", d == "tab", d == `\t`, d == "\t":
		return '\t', nil
	case d == "":
		return ',', nil
	case len(d) == 1 && d[0] > ' ' && d[0] < 0x7f && !strings.ContainsAny(d, `"+-.0123456789`) && !isLetter(d[0]):
		return d[0], nil
	}
	return 0, target.Usage("bulk: -delimiter is one character such as ';', or tab")
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func (c *config) client(service *target.Target) (*bins.Client, error) {
	options := service.Options()
	if c.rate > 0 {
		// A burst of 1 never exceeds the rate, not even in the first second.
		options = append(options, bins.WithRateLimit(rate.Limit(c.rate), 1))
	}
	return bins.NewClient(service.URL, bins.StaticToken(service.Value("CARDDATA_API_KEY")), options...)
}

func (c *config) bulkOptions() bins.BulkOptions {
	o := bins.BulkOptions{Concurrency: c.concurrency, PrefixLength: c.prefix, Ranges: c.ranges, GiveUpAfter: c.giveUp}
	if c.enhanced {
		o.Enhanced = new(true) // otherwise left out: the service's default is not documented
	}
	return o
}
