// Fetch downloads the results of account updater jobs, of any size, for any number of
// merchants.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/carddata/carddata-go/examples/tools/internal/cli"
	"github.com/carddata/carddata-go/updater"
)

const usage = `usage: fetch -job ID -o FILE [flags]

Downloads the result of an account updater job. It survives broken connections, Ctrl-C
and being killed: the same command continues where it ended, and FILE is the old one
until the new one is complete. If FILE is what the service has, it is not fetched again.

  -job ID           the inquiry job
  -o FILE           a file that only you can read; {merchant} in it is replaced. "-" is
                    standard output, unless it is a terminal
  -merchant ID      the merchant of the job (CARDDATA_MERCHANT_ID); repeat it for
                    several, which need {merchant} in -o
  -parallel N       merchants at the same time (4)

  -wait DURATION    how long to ask again for a job that is not ready (0s)
  -interval DURATION
                    how long to wait before asking again (30s)
  -not-ready LIST   error codes and statuses, separated by commas, that mean to you that
                    the job is not ready, beside 202 and 204. The service documents none

  -read FORMAT      prints the rows of the result, masked, and writes no file: csv with a
                    header, or json, an array of objects or one object after another.
                    The format of results is not documented

  -accept-unverified
                    accepts a result without a length or chunks: it may be cut off
  -redirect-host HOST
                    follows redirects to HOST, or to all hosts below a domain with
                    *.DOMAIN, without credential and merchant; repeat it for several

CARDDATA_UPDATER_URL, CARDDATA_ACCESS_TOKEN and CARDDATA_MERCHANT_ID name the service,
the credential and the merchant.
  -sandbox          uses a sandbox with invented data in their place, and its job 42
  -size SIZE        makes the sandbox's result this large, such as 1GiB
  -flaky            makes the sandbox's connections break and its responses fail

Exit code: 0 complete; 1 failed; 2 usage or environment; 3 not complete, but the same
command can succeed later; 130 interrupted. "go run" turns all but 0 into 1: build the
program first.
`

// A config is what the command line says.
type config struct {
	job, path, read            string
	merchants, notReady, hosts []string
	parallel                   int
	acceptUnverified           bool
	wait, interval             time.Duration
	sandbox, flaky             bool
	size                       int64
	stdout, stderr             io.Writer
}

func main() {
	c := config{stdout: os.Stdout, stderr: os.Stderr}
	os.Exit(c.run(cli.Signals(), os.Args[1:]))
}

func (c *config) run(ctx context.Context, args []string) int {
	if code, ok := cli.Parse(c.flags(), usage, args, c.stdout, c.stderr); !ok {
		return code
	}
	if err := c.check(); err != nil {
		return cli.Fail(ctx, c.stderr, err)
	}
	client, err := c.client()
	if err != nil {
		return cli.Fail(ctx, c.stderr, err)
	}
	if c.path == "" || c.path == standard {
		return c.fail(ctx, failure{err: c.stream(ctx, client)})
	}
	return c.save(ctx, client)
}

func (c *config) flags() *flag.FlagSet {
	f := flag.NewFlagSet("fetch", flag.ContinueOnError)
	for name, value := range map[string]*string{"job": &c.job, "o": &c.path, "read": &c.read} {
		f.StringVar(value, name, "", "")
	}
	for name, value := range map[string]*bool{"accept-unverified": &c.acceptUnverified, "sandbox": &c.sandbox, "flaky": &c.flaky} {
		f.BoolVar(value, name, false, "")
	}
	for name, values := range map[string]*[]string{"merchant": &c.merchants, "redirect-host": &c.hosts} {
		f.Func(name, "", func(value string) error {
			*values = append(*values, value)
			return nil
		})
	}
	f.IntVar(&c.parallel, "parallel", 4, "")
	f.DurationVar(&c.wait, "wait", 0, "")
	f.DurationVar(&c.interval, "interval", 30*time.Second, "")
	f.Func("not-ready", "", func(list string) error {
		for entry := range strings.SplitSeq(list, ",") {
			if entry = strings.TrimSpace(entry); entry == "" {
				return errors.New("an entry is empty") // it would mean every failure without a code
			}
			c.notReady = append(c.notReady, entry)
		}
		return nil
	})
	f.Func("size", "", func(text string) error {
		size, err := humanize.ParseBytes(text)
		if err != nil || size < 1 || size > 1<<50 {
			return errors.New("not a size, such as 1GiB")
		}
		c.size = int64(size)
		return nil
	})
	return f
}

// check refuses what cannot be meant, before anything is created or sent.
func (c *config) check() error {
	if c.sandbox {
		c.job = cmp.Or(c.job, "42")
	}
	switch {
	case c.job == "":
		return cli.Usage("fetch: -job is missing (-h helps)")
	case c.path == "" && c.read == "":
		return cli.Usage("fetch: -o is missing (-h helps)")
	case !c.sandbox && (c.size > 0 || c.flaky):
		return cli.Usage("fetch: -size and -flaky are for the sandbox")
	case c.path == standard && isTerminal(c.stdout):
		return cli.Usage("fetch: a result holds card numbers and is not for a terminal: -read shows it masked")
	case c.path != "" && c.read != "":
		return cli.Usage("fetch: -read prints the rows, without -o")
	case c.parallel < 1, c.wait < 0, c.interval <= 0:
		return cli.Usage("fetch: -parallel must be at least 1, -interval positive, -wait not negative")
	case len(c.notReady) > 0 && c.wait == 0:
		return cli.Usage("fetch: -not-ready needs -wait")
	case len(c.merchants) > 1 && !strings.Contains(c.path, merchantMark):
		return cli.Usage("fetch: several merchants need -o with %s in it", merchantMark)
	case c.read != "" && formats[c.read] == nil:
		return cli.Usage("fetch: -read must be csv or json")
	}
	return nil
}

// client makes the client of the first merchant.
func (c *config) client() (*updater.Client, error) {
	var options []updater.Option
	if len(c.hosts) > 0 {
		options = append(options, updater.WithRedirectHosts(c.hosts...))
	}
	if c.wait > 0 {
		options = append(options, updater.WithNotReady(c.isNotReady), updater.WithWait(c.interval, c.wait))
	}
	if c.sandbox {
		fmt.Fprintln(c.stderr, "sandbox: all data are invented")
		c.merchants = append(c.merchants, "sandbox")
		address, transport, err := c.serve()
		if err != nil {
			return nil, err
		}
		return updater.NewClient(address, c.merchants[0], updater.StaticToken("sandbox"), append(options, transport)...)
	}
	names := []string{"CARDDATA_UPDATER_URL", "CARDDATA_ACCESS_TOKEN"}
	if len(c.merchants) == 0 {
		names = append(names, "CARDDATA_MERCHANT_ID")
	}
	values, insecure, err := cli.Environment(os.LookupEnv, names...)
	if err != nil {
		return nil, err
	}
	if insecure {
		options = append(options, updater.WithInsecureHTTP())
	}
	if len(c.merchants) == 0 {
		c.merchants = []string{values["CARDDATA_MERCHANT_ID"]}
	}
	return updater.NewClient(values["CARDDATA_UPDATER_URL"], c.merchants[0], updater.StaticToken(values["CARDDATA_ACCESS_TOKEN"]), options...)
}

// isNotReady reports whether a failure is in the list of -not-ready, and says so.
func (c *config) isNotReady(e *updater.Error) bool {
	status := strconv.Itoa(e.StatusCode)
	if !errors.Is(e, updater.ErrNotReady) && !slices.Contains(c.notReady, status) && !slices.Contains(c.notReady, e.Code) {
		return false
	}
	fmt.Fprintln(c.stderr, "the job is not ready (status "+status+"), asking again")
	return true
}
