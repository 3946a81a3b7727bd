// Enrich adds card data to the rows of a file of any size.
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
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/tools/internal/cli"
	"github.com/carddata/carddata-go/internal/sandbox"
)

const usage = `usage: enrich -in FILE -out FILE [flags]

Looks up the card of every row of a file and writes the rows with columns about the
card appended. Killed at any moment, it continues with -resume.

"-" is standard input or output. What goes to standard output cannot be resumed; the
report then goes to standard error, and -failed is needed.

Input, by its extension unless a flag says so:
  -column NAME   CSV with a header; the column that holds the card ("card")
  -delimiter C   the character between the fields of CSV, or "tab" (a comma; a tab
                 for .tsv)
  -field NAME    NDJSON; the member that holds the card ("card")

Output:
  -columns LIST  members of the service's card object, separated by commas; "error"
                 is the service's word on a card that it does not know, NAME=MEMBER
                 renames a column. The default is
                 ` + defaultColumns + `
  -failed FILE   rows without a result, by line, with masked cards (OUT.failed.csv)
  -json          prints the report as JSON
  -resume        continues where the same command ended

Requests:
  -concurrency N  requests in flight (16)
  -rate N         most requests a second
  -prefix N       sends the first N digits of card numbers, at most 11, and no more (8);
                  0 sends cards as they are: give it for tokens, whose digits are cut
                  like those of a card number
  -enhanced       asks for the enhanced lookup
  -give-up DURATION
                  how long the run pauses while the service fails, before it ends; it
                  can then be resumed (30m)

CARDDATA_BIN_URL and CARDDATA_API_KEY name the service and the credential.
  -sandbox        uses a sandbox with invented data in their place; without -in, 200,000
                  rows are invented too

Exit code: 0 every row is in the output, even if its card is unknown; 1 failed;
2 usage, environment, or another process on the same output; 3 done, but some rows
are in the failed file; 4 the service does not work, the run can be resumed;
130 interrupted. "go run" turns all but 0 into 1: build the program first.
`

const (
	exitFailedRows = 3
	exitOutage     = 4
)

// standard is the path of standard input and output.
const standard = "-"

// A config is what the command line says.
type config struct {
	in, out, failed         string
	column, field           string
	columns, delimiter      string
	json, resume            bool
	enhanced, sandbox, made bool // made: the input is invented too
	concurrency, prefix     int
	giveUp                  time.Duration
	rate                    float64
	stdin                   io.Reader
	stdout, stderr          io.Writer
	environment             func(string) (string, bool)
}

func main() {
	c := config{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environment: os.LookupEnv}
	os.Exit(c.run(cli.Signals(), os.Args[1:]))
}

func (c *config) run(ctx context.Context, args []string) int {
	if code, ok := cli.Parse(c.flags(), usage, args, c.stdout, c.stderr); !ok {
		return code
	}
	client, err := c.prepare()
	if err != nil {
		return cli.Fail(ctx, c.stderr, err)
	}
	r, err := c.enrich(ctx, client)
	if r != nil { // an interrupted run is reported too
		stdout := c.stdout
		if c.out == standard {
			stdout = c.stderr
		}
		err = errors.Join(err, r.publish(stdout, c.json))
	}
	switch {
	case err != nil:
		code := cli.Fail(ctx, c.stderr, err)
		if r != nil && c.out != standard {
			fmt.Fprintln(c.stderr, "to continue, run the same command with -resume")
		}
		if code == cli.ExitFailed && errors.Is(err, errOutage) {
			code = exitOutage
		}
		return code
	case r.Failed > 0:
		return exitFailedRows
	}
	return 0
}

func (c *config) flags() *flag.FlagSet {
	f := flag.NewFlagSet("enrich", flag.ContinueOnError)
	for name, value := range map[string]*string{
		"in": &c.in, "out": &c.out, "failed": &c.failed,
		"column": &c.column, "field": &c.field, "delimiter": &c.delimiter,
	} {
		f.StringVar(value, name, "", "")
	}
	f.StringVar(&c.columns, "columns", defaultColumns, "")
	for name, value := range map[string]*bool{
		"json": &c.json, "resume": &c.resume, "enhanced": &c.enhanced, "sandbox": &c.sandbox,
	} {
		f.BoolVar(value, name, false, "")
	}
	f.IntVar(&c.concurrency, "concurrency", 16, "")
	f.IntVar(&c.prefix, "prefix", 8, "")
	f.DurationVar(&c.giveUp, "give-up", 30*time.Minute, "")
	f.Float64Var(&c.rate, "rate", 0, "")
	return f
}

// prepare checks the flags before anything is created or sent.
func (c *config) prepare() (*bins.Client, error) {
	c.made = c.in == "" && c.sandbox
	if c.made {
		c.in, c.column = "invented.csv", "card"
	}
	switch {
	case c.column != "" && c.field != "":
		return nil, cli.Usage("enrich: -column and -field exclude each other")
	case c.in == "" || c.out == "":
		return nil, cli.Usage("enrich: -in and -out are needed (-h helps)")
	case c.out == standard && c.resume:
		return nil, cli.Usage("enrich: what went to standard output cannot be resumed")
	case c.out == standard && c.failed == "":
		return nil, cli.Usage("enrich: -out - needs -failed FILE: rows without a result would be lost")
	case c.out != standard && (c.statePath() == c.in || c.statePath() == c.failed):
		return nil, cli.Usage("enrich: %s is the file of the run's state: name another file", c.statePath())
	case c.prefix < 0, c.prefix > 11:
		return nil, cli.Usage("enrich: -prefix is 0 to 11: more digits can be a card number")
	case c.concurrency < 1, c.giveUp <= 0, !(c.rate >= 0):
		return nil, cli.Usage("enrich: -concurrency must be at least 1, -rate not negative, and -give-up a time")
	}
	if c.out != standard {
		c.failed = cmp.Or(c.failed, c.out+".failed.csv")
	}
	return c.client()
}

func (c *config) client() (*bins.Client, error) {
	var options []bins.Option
	if c.rate > 0 { // a burst of 1 never exceeds the rate, not even in the first second
		options = append(options, bins.WithRateLimit(rate.Limit(c.rate), 1))
	}
	if c.sandbox {
		engine := sandbox.New()
		engine.SetLookup(sandbox.SyntheticCard) // for any number
		server, err := engine.ListenTCP("127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(c.stderr, "sandbox: all data are invented")
		return bins.NewClient(server.URL(), bins.StaticToken("sandbox"), options...)
	}
	values, insecure, err := cli.Environment(c.environment, "CARDDATA_BIN_URL", "CARDDATA_API_KEY")
	if err != nil {
		return nil, err
	}
	if insecure {
		options = append(options, bins.WithInsecureHTTP())
	}
	return bins.NewClient(values["CARDDATA_BIN_URL"], bins.StaticToken(values["CARDDATA_API_KEY"]), options...)
}

// format chooses the format of the input.
func (c *config) format(columns []column) (format, error) {
	delimiter, err := c.delimiterByte()
	if err != nil {
		return nil, err
	}
	switch extension := filepath.Ext(c.in); {
	case c.column != "", c.field == "" && (extension == ".csv" || extension == ".tsv"):
		return &csvFormat{column: cmp.Or(c.column, "card"), columns: columns, delimiter: delimiter}, nil
	case c.field != "", extension == ".ndjson", extension == ".jsonl":
		return newNDJSONFormat(cmp.Or(c.field, "card"), columns), nil
	}
	return nil, cli.Usage("enrich: the input's format does not show in its name: give -column or -field")
}

// delimiterByte returns the delimiter of CSV.
func (c *config) delimiterByte() (byte, error) {
	switch d := c.delimiter; {
	case d == "" && filepath.Ext(c.in) == ".tsv", d == "tab", d == `\t`, d == "\t":
		return '\t', nil
	case d == "":
		return ',', nil
	case len(d) == 1 && strings.Contains(";|:^~", d):
		return d[0], nil
	}
	return 0, cli.Usage("enrich: -delimiter is one of ; | : ^ ~ or tab")
}
