// Probe asks a service what its contract leaves open. By default it sends nothing
// and prints what it would send. See README.md beside this file.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/carddata/carddata-go/internal/probe"
)

// Exit codes.
const (
	exitDone    = 0
	exitFailed  = 1 // stopped early, or something of this side's
	exitUsage   = 2
	exitDrifted = 3 // -compare found a difference
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Settings are the command line.
type settings struct {
	connect, read                bool
	write, confirm, planHash     string
	job, pending                 string
	rate                         float64
	json, html, profile, compare string
	ledger                       string
}

func run(ctx context.Context, args []string, env func(string) (string, bool), stdout, stderr io.Writer) int {
	var s settings
	flags := flag.NewFlagSet("probe", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&s.connect, "connect", false, "connect to each area, to see versions and when idle connections are closed")
	flags.BoolVar(&s.read, "read", false, "look up at most 56 times and download at most 5 times. Lookups may be billed")
	flags.StringVar(&s.write, "write", "", "submit at most 6 refunds, marked as test records, to this `ACCOUNT`. Each may be recorded")
	flags.StringVar(&s.confirm, "confirm", "", "the `ACCOUNT` of -write once more")
	flags.StringVar(&s.planHash, "plan-hash", "", "the `HASH` that the plan of -write printed")
	flags.StringVar(&s.job, "job", "", "a job `ID` whose result is there")
	flags.StringVar(&s.pending, "pending", "", "a job `ID` whose result is not ready")
	flags.Float64Var(&s.rate, "rate", 1, "requests a second")
	flags.StringVar(&s.json, "json", "", "write the points to this `FILE`")
	flags.StringVar(&s.html, "html", "", "write a page for people to this `FILE`")
	flags.StringVar(&s.profile, "profile", "", "write a profile for the fakes to this `FILE`")
	flags.StringVar(&s.compare, "compare", "", "compare with the profile in this `FILE`, and exit with 3 if the service differs")
	flags.StringVar(&s.ledger, "ledger", "probe.ledger", "the `FILE` that keeps what was sent, so that nothing is sent twice")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitDone
		}
		return exitUsage
	}
	code, err := s.probe(ctx, flags.Args(), env, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "probe:", err)
	}
	return code
}

func (s *settings) probe(ctx context.Context, rest []string, env func(string) (string, bool), stdout, stderr io.Writer) (int, error) {
	get := func(name string) string { value, _ := env(name); return value }
	target, err := s.target(get)
	if err == nil && len(rest) > 0 {
		err = errors.New("there are no arguments beside the flags")
	}
	if err == nil && !(s.rate > 0) {
		err = errors.New("-rate must be above 0")
	}
	if err != nil {
		return exitUsage, err
	}
	var before *profile
	if s.compare != "" {
		data, err := os.ReadFile(s.compare)
		if err != nil {
			return exitUsage, err
		}
		p, err := parseProfile(data)
		if err != nil {
			return exitUsage, fmt.Errorf("-compare: %w", err)
		}
		before = &p
	}
	mode := s.mode()
	if mode == probe.ModePlan {
		probe.NewPlan(target, 1).Print(stdout, mode)
		return exitDone, nil
	}
	ledger, err := probe.OpenLedger(s.ledger)
	if err != nil {
		return exitFailed, err
	}
	defer ledger.Close()
	plan := probe.NewPlan(target, ledger.Run())
	if mode == probe.ModeWrite {
		if err := s.consent(plan, get("CARDDATA_ACCOUNT_ID")); err != nil {
			plan.Print(stdout, mode)
			return exitUsage, err
		}
	}
	config := probe.Config{Mode: mode, Rate: s.rate, Say: func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) }}
	stopped, err := probe.Run(ctx, plan, ledger, config)
	if ctx.Err() != nil {
		return exitFailed, errors.New("interrupted: the same command goes on from here")
	}
	if err != nil {
		return exitFailed, err
	}
	r := report{
		Service: hosts(target), Date: time.Now().UTC().Format(time.DateOnly), Mode: mode.String(),
		Stopped: stopped, Points: probe.Points(plan, ledger), Offered: probe.Connections(ledger),
	}
	r.Options, r.Letter = options(r.Points, accepted(ledger)), letter(plan, r.Points)
	r.print(stdout)
	if err := s.files(r); err != nil {
		return exitFailed, err
	}
	if before != nil {
		if list := before.differences(r.Points); len(list) > 0 {
			fmt.Fprintf(stdout, "\nThe service is not as in the profile:\n  %s\n", strings.Join(list, "\n  "))
			return exitDrifted, nil
		}
	}
	if stopped != "" {
		return exitFailed, errors.New(stopped)
	}
	return exitDone, nil
}

func (s *settings) mode() probe.Mode {
	switch {
	case s.write != "":
		return probe.ModeWrite
	case s.read:
		return probe.ModeRead
	case s.connect:
		return probe.ModeConnect
	}
	return probe.ModePlan
}

// target reads the environment. An area whose settings are missing is not asked.
func (s *settings) target(get func(string) string) (t probe.Target, err error) {
	if url, key := get("CARDDATA_BIN_URL"), get("CARDDATA_API_KEY"); url != "" && key != "" {
		t.BinURL, t.APIKey = url, key
	}
	url, token, merchant := get("CARDDATA_UPDATER_URL"), get("CARDDATA_ACCESS_TOKEN"), get("CARDDATA_MERCHANT_ID")
	if url != "" && token != "" && merchant != "" {
		t.UpdaterURL, t.AccessToken, t.MerchantID = url, token, merchant
	}
	t.RefundURL, t.Account, t.Job, t.Pending = get("CARDDATA_REFUND_URL"), s.write, s.job, s.pending
	for _, base := range []*string{&t.BinURL, &t.UpdaterURL, &t.RefundURL} {
		if *base, err = usable(*base, get("CARDDATA_INSECURE_HTTP") == "1"); err != nil {
			return t, err
		}
	}
	if t.BinURL == "" && t.UpdaterURL == "" && t.RefundURL == "" {
		return t, errors.New("no area is set: see README.md for the environment variables")
	}
	return t, nil
}

// usable refuses what would send a credential in the clear.
func usable(base string, insecure bool) (string, error) {
	u, err := url.Parse(base)
	switch {
	case base == "":
		return "", nil
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("a base URL cannot be used")
	case u.Scheme == "https", u.Scheme == "http" && (insecure || slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname())):
		return strings.TrimRight(base, "/"), nil
	}
	return "", errors.New("a base URL is not https")
}

// consent is given twice, and for this plan alone.
func (s *settings) consent(plan *probe.Plan, production string) error {
	switch {
	case plan.Target.RefundURL == "":
		return errors.New("-write needs CARDDATA_REFUND_URL")
	case s.write == production:
		return errors.New("-write names the account in CARDDATA_ACCOUNT_ID: give a test account")
	case s.confirm != s.write || s.planHash != plan.Hash():
		return fmt.Errorf("nothing was sent; if every refund of this plan may be recorded, add -confirm with the account, and -plan-hash %s", plan.Hash())
	}
	return nil
}

func hosts(t probe.Target) string {
	var list []string
	for _, base := range []string{t.BinURL, t.UpdaterURL, t.RefundURL} {
		if u, err := url.Parse(base); err == nil && u.Host != "" && !slices.Contains(list, u.Host) {
			list = append(list, u.Host)
		}
	}
	return strings.Join(list, ", ")
}

func (s *settings) files(r report) error {
	points, err := json.MarshalIndent(map[string]any{"points": r.Points}, "", "  ")
	if err != nil {
		return err
	}
	var page strings.Builder
	if err := r.page(&page); err != nil {
		return err
	}
	return cmp.Or(
		write(s.json, append(points, '\n')),
		write(s.html, []byte(page.String())),
		write(s.profile, newProfile(r.Points).marshal()),
	)
}

func write(path string, data []byte) error {
	if path == "" {
		return nil
	}
	return os.WriteFile(path, data, 0o644)
}
