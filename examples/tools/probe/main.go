// Probe asks a service what its contract leaves open, and prints what it saw. By
// default it sends nothing and prints what it would send. See README.md beside this file.
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/carddata/carddata-go/examples/tools/internal/cli"
)

const usage = `usage: probe [-read] [-write ACCOUNT -plan-hash HASH] [-job ID] [-pending ID]
             [-rate N]

Asks a service what its contract leaves open, and prints what it saw under each open
point, with the option of the library that the point bears on. Without -read and
-write it sends nothing, and prints every request that it would send.

  -read            send at most 14 lookups, which may be billed, and at most 5 downloads
  -write ACCOUNT   send at most 3 refunds, marked as test records, to this account. Each
                   may be recorded. Needs -plan-hash
  -plan-hash HASH  the hash that -write printed with its plan
  -job ID          a job with a result, for the downloads
  -pending ID      a job without a result yet, for the downloads
  -rate N          requests a second, 1 by default

Environment, for each area that is to be asked:
  CARDDATA_BIN_URL, CARDDATA_API_KEY
  CARDDATA_UPDATER_URL, CARDDATA_ACCESS_TOKEN, CARDDATA_MERCHANT_ID
  CARDDATA_REFUND_URL
CARDDATA_ACCOUNT_ID, if set, is the account that -write refuses, because your programs
use it. CARDDATA_INSECURE_HTTP=1 allows http to another machine.

Exit code: 0 done; 1 stopped early or failed; 2 usage, or consent is missing;
130 interrupted. What was seen until then is printed. The same command sends all of its
requests again, refunds under other ids.
`

func main() {
	os.Exit(run(cli.Signals(), os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

type settings struct {
	read            bool
	write, planHash string
	job, pending    string
	rate            float64
}

func run(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int {
	var s settings
	flags := flag.NewFlagSet("probe", flag.ContinueOnError)
	flags.BoolVar(&s.read, "read", false, "")
	flags.StringVar(&s.write, "write", "", "")
	flags.StringVar(&s.planHash, "plan-hash", "", "")
	flags.StringVar(&s.job, "job", "", "")
	flags.StringVar(&s.pending, "pending", "", "")
	flags.Float64Var(&s.rate, "rate", 1, "")
	if code, ok := cli.Parse(flags, usage, args, stdout, stderr); !ok {
		return code
	}
	if err := s.probe(ctx, env, stdout, stderr); err != nil {
		return cli.Fail(ctx, stderr, fmt.Errorf("probe: %w", err))
	}
	return 0
}

func (s *settings) probe(ctx context.Context, env func(string) string, stdout, stderr io.Writer) error {
	if !(s.rate > 0) {
		return cli.Usage("-rate must be above 0")
	}
	t, err := s.target(env)
	if err != nil {
		return err
	}
	unset := t.binURL == "" && t.updaterURL == "" && t.refundURL == ""
	if !s.read && s.write == "" {
		if unset {
			fmt.Fprint(stdout, "No area is set up in the environment. With all three, this is the plan.\n\n")
			t.binURL, t.updaterURL, t.refundURL = "unset", "unset", "unset"
		}
		p := newPlan(t, anyRun)
		p.printReads(stdout)
		p.printWrites(stdout)
		return nil
	}
	if unset {
		return cli.Usage("no area is set up in the environment")
	}
	if s.write != "" {
		plan := newPlan(t, anyRun)
		switch {
		case t.refundURL == "":
			return cli.Usage("-write needs CARDDATA_REFUND_URL")
		case s.write == env("CARDDATA_ACCOUNT_ID"):
			return cli.Usage("-write names the account in CARDDATA_ACCOUNT_ID: give a test account")
		case s.planHash != plan.hash():
			plan.printWrites(stdout)
			return cli.Usage("nothing was sent; if every refund above may be recorded, add -plan-hash %s", plan.hash())
		}
	}
	sender := newSender(newPlan(t, rand.Text()[:10]), s.rate, func(text string) { fmt.Fprintln(stderr, text) })
	err = sender.run(ctx, s.read, s.write != "")
	report(stdout, sender.seen)
	return err
}

// target reads the environment. An area with a missing variable is not asked.
func (s *settings) target(env func(string) string) (t target, err error) {
	if url, key := env("CARDDATA_BIN_URL"), env("CARDDATA_API_KEY"); url != "" && key != "" {
		t.binURL, t.apiKey = url, key
	}
	url, token, merchant := env("CARDDATA_UPDATER_URL"), env("CARDDATA_ACCESS_TOKEN"), env("CARDDATA_MERCHANT_ID")
	if url != "" && token != "" && merchant != "" {
		t.updaterURL, t.accessToken, t.merchantID = url, token, merchant
	}
	t.refundURL, t.account, t.job, t.pending = env("CARDDATA_REFUND_URL"), s.write, s.job, s.pending
	for name, base := range map[string]*string{
		"CARDDATA_BIN_URL": &t.binURL, "CARDDATA_UPDATER_URL": &t.updaterURL, "CARDDATA_REFUND_URL": &t.refundURL,
	} {
		if *base == "" {
			continue
		}
		if err := cli.CheckURL(name, *base, env(cli.InsecureHTTP) == "1"); err != nil {
			return t, err
		}
		*base = strings.TrimRight(*base, "/")
	}
	return t, nil
}
