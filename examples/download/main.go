// Download fetches the results of account updater jobs, of any size, for any
// number of merchants.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/updater"
)

const usage = `usage: download [-job ID] [-o FILE] [flags]

Fetches the result of an account updater job. With -o it survives broken
connections, Ctrl-C and being killed: the same command goes on where it ended, and
FILE is the old one until the new one is complete. Without -o the result goes to
standard output: masked on a terminal, unchanged to a pipe or a file.

  -job ID           the inquiry job; 42, with invented data, in the built-in sandbox
  -o FILE           a file that only you can read; {merchant} in it is replaced. If it
                    is what the service has, it is not fetched again
  -merchant ID      whose job it is (CARDDATA_MERCHANT_ID); repeat it for several,
                    which need {merchant} in -o
  -parallel N       merchants at the same time (4)
  -no-hash          leaves out the SHA-256, which takes some time
  -accept-unverified
                    takes a result whose end the service does not mark, so that one cut
                    off cannot be told from a complete one

  -accept-encoded   takes a result that is compressed although nobody asked for it, as
                    it is
  -accept-html      takes a result that the service calls HTML
  -redirect-host HOST
                    follows redirects to HOST, or to all hosts below a domain with
                    *.DOMAIN, without credential and merchant; repeat it for several
  -resume-for DURATION
                    how long a broken result is resumed without progress (5m)

  -not-ready LIST   error codes and statuses, separated by commas, that mean to you
                    that the job is not ready: ask again. The service documents none
  -wait DURATION    how long to ask (1h)
  -interval DURATION
                    how long to wait before asking again (30s)

  -read FORMAT      prints the rows of the result, masked: csv with a header, ndjson or
                    json, an array. The format of results is not documented. With -o, a
                    result that is not of that format does not become FILE

  -size SIZE        makes the sandbox's result this large, such as 1GiB
  -flaky            makes the sandbox's connections break and its answers fail

CARDDATA_UPDATER_URL, CARDDATA_ACCESS_TOKEN and CARDDATA_MERCHANT_ID name the
service, the credential and the merchant. If none is set, a sandbox answers.

Exit code: 0 complete; 1 failed; 2 usage or configuration; 3 not complete, but the
same command may yet succeed; 130 interrupted. "go run" turns all but 0 into 1:
build the program first.
`

// A config is what the command line says.
type config struct {
	job, path, read          string
	merchants, notReady      []string
	parallel                 int
	redirectHosts            []string
	noHash, acceptUnverified bool
	encoded, html            bool
	wait, interval           time.Duration
	resumeFor                time.Duration
	size                     int64
	flaky                    bool
}

func main() {
	os.Exit(run(target.Signals(), os.Args[1:], os.Stdout, os.Stderr, os.LookupEnv))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer, env func(string) (string, bool)) int {
	var c config
	flags := c.flags()
	if code, ok := target.Parse(flags, usage, args, stdout, stderr); !ok {
		return code
	}
	if err := c.check(flags.NArg()); err != nil {
		return target.Fail(ctx, stderr, err)
	}
	settings := target.Settings{URL: "CARDDATA_UPDATER_URL", Required: []string{"CARDDATA_ACCESS_TOKEN"}}
	if len(c.merchants) == 0 {
		settings.Required = append(settings.Required, "CARDDATA_MERCHANT_ID")
	} else {
		settings.Optional = []string{"CARDDATA_MERCHANT_ID"}
	}
	service, err := target.Open(stderr, env, settings)
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}
	defer service.Close()
	if len(c.merchants) == 0 {
		c.merchants = []string{service.Value("CARDDATA_MERCHANT_ID")}
	}
	address, options, err := c.prepare(service)
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}
	options = append(service.Options(), append(options, c.options()...)...)
	client, err := updater.NewClient(address, "", // each merchant has a client of its own
		updater.StaticToken(service.Value("CARDDATA_ACCESS_TOKEN")), options...)
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}
	if c.path == "" {
		its, err := client.ForMerchant(c.merchants[0])
		if err != nil {
			return target.Fail(ctx, stderr, err)
		}
		return fail(ctx, stderr, c.print(ctx, its, stdout, stderr))
	}
	return c.save(ctx, client, stdout, stderr)
}

func (c *config) flags() *flag.FlagSet {
	f := flag.NewFlagSet("download", flag.ContinueOnError)
	for name, value := range map[string]*string{"job": &c.job, "o": &c.path, "read": &c.read} {
		f.StringVar(value, name, "", "")
	}
	for name, value := range map[string]*bool{"no-hash": &c.noHash, "accept-unverified": &c.acceptUnverified, "accept-encoded": &c.encoded, "accept-html": &c.html, "flaky": &c.flaky} {
		f.BoolVar(value, name, false, "")
	}
	f.IntVar(&c.parallel, "parallel", 4, "")
	f.DurationVar(&c.wait, "wait", time.Hour, "")
	f.DurationVar(&c.resumeFor, "resume-for", 5*time.Minute, "")
	f.DurationVar(&c.interval, "interval", 30*time.Second, "")
	f.Func("merchant", "", func(id string) error {
		c.merchants = append(c.merchants, id)
		return nil
	})
	f.Func("redirect-host", "", func(host string) error {
		c.redirectHosts = append(c.redirectHosts, host)
		return nil
	})
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
func (c *config) check(arguments int) error {
	switch {
	case arguments > 0:
		return target.Usage("download: no arguments besides flags (-h helps)")
	case c.parallel < 1, c.wait <= 0, c.interval <= 0, c.resumeFor <= 0:
		return target.Usage("download: -parallel must be at least 1, -wait, -interval and -resume-for positive")
	case len(c.merchants) > 1 && !strings.Contains(c.path, merchantMark):
		return target.Usage("download: several merchants need -o with %s in it", merchantMark)
	case c.read != "" && formats[c.read] == nil:
		return target.Usage("download: -read must be csv, ndjson or json")
	case len(c.merchants) > 1 && c.read != "":
		return target.Usage("download: -read takes one merchant")
	}
	return nil
}

// options are those of the library that the command line asks for.
func (c *config) options() []updater.Option {
	options := []updater.Option{updater.WithResumeTimeout(c.resumeFor)}
	if len(c.redirectHosts) > 0 {
		options = append(options, updater.WithRedirectHosts(c.redirectHosts...))
	}
	if c.encoded {
		options = append(options, updater.WithEncodedContent())
	}
	if c.html {
		options = append(options, updater.WithHTMLContent())
	}
	return options
}

// waitOptions make what is in the caller's list mean that the job is not ready.
func (c *config) waitOptions(say func(line string)) updater.WaitOptions {
	if len(c.notReady) == 0 {
		return updater.WaitOptions{}
	}
	return updater.WaitOptions{
		NotReady: func(e *updater.Error) bool {
			status := strconv.Itoa(e.StatusCode)
			if !slices.Contains(c.notReady, status) && !slices.Contains(c.notReady, e.Code) {
				return false
			}
			say("the job is not ready (status " + status + "), asking again")
			return true
		},
		Interval: c.interval,
		MaxWait:  c.wait,
	}
}
