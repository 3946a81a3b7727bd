// Command benchmark measures the library beside what a team would use instead.
//
//	go -C internal/benchmark run . -o .
//
// Every row is measured in rounds. A round runs every contestant once, in an
// order that turns from round to round, and only what was measured in the same
// round is compared: a slow moment of the machine is one of all contestants. A
// ratio is the median of the rounds' ratios.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(1)
	}
}

// An environment is what rows have to work with.
type environment struct {
	quick  bool   // small sizes
	full   bool   // the largest sizes
	dir    string // for temporary files
	worker string // the program of that name
	closes []func() error
}

// onClose registers what is to be done when the row was measured.
func (e *environment) onClose(f func() error) { e.closes = append(e.closes, f) }

func (e *environment) close() (err error) {
	for _, f := range slices.Backward(e.closes) {
		err = errors.Join(err, f())
	}
	e.closes = nil
	return err
}

// seconds is how long a contestant works in a round.
func (e *environment) seconds() float64 {
	if e.quick {
		return 0.002
	}
	return 0.2
}

func (e *environment) benchtime() string { return fmt.Sprint(e.seconds(), "s") }

func run(args []string, stdout, stderr io.Writer) (err error) {
	var e environment
	flags := flag.NewFlagSet("benchmark", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "rows to measure, separated by commas: "+strings.Join(names(), ", "))
	rounds := flags.Int("rounds", 6, "rounds of each row")
	out := flags.String("o", "", "directory for README.md, results.json and growth.svg")
	flags.BoolVar(&e.quick, "quick", false, "small sizes and 2 rounds, to see that it works; the figures mean little")
	flags.BoolVar(&e.full, "full", false, "10 million inputs and 10 GiB as well; takes longer")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if e.quick {
		*rounds = min(*rounds, 2)
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if *rounds < 1 {
		return fmt.Errorf("%d rounds", *rounds)
	}

	if e.dir, err = os.MkdirTemp("", "benchmark"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(e.dir)) }()
	e.worker = filepath.Join(e.dir, "worker")
	if err := build(e.worker, "./worker"); err != nil {
		return err
	}
	testing.Init()
	if err := flag.Set("test.benchtime", e.benchtime()); err != nil {
		return err
	}

	began := time.Now()
	report := report{Date: began.UTC().Format(time.DateOnly), Machine: thisMachine(), Load: loadBefore(), Rounds: *rounds, Quick: e.quick}
	for _, r := range chosen {
		fmt.Fprintf(stderr, "%5.0fs %s\n", time.Since(began).Seconds(), r.name)
		measured, err := r.measure(&e, *rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		report.Results = append(report.Results, measured)
	}
	fmt.Fprintf(stderr, "%5.0fs done\n", time.Since(began).Seconds())
	page, err := report.markdown()
	if err != nil {
		return err
	}
	if _, err := io.WriteString(stdout, page); err != nil || *out == "" {
		return err
	}
	return report.write(*out)
}

func names() []string {
	var all []string
	for _, r := range rows {
		all = append(all, r.name)
	}
	return all
}

func choose(only string) ([]row, error) {
	if only == "" {
		return rows, nil
	}
	var chosen []row
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(rows, func(r row) bool { return r.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no row %q, but %s", name, strings.Join(names(), ", "))
		}
		chosen = append(chosen, rows[i])
	}
	return chosen, nil
}

// build builds a package of this module, whose directory is the current one.
func build(program, pkg string, flags ...string) error {
	return goCommand("", append(append([]string{"build", "-o", program}, flags...), pkg)...)
}

// goCommand runs a command of Go, with GOEXPERIMENT unless that is "".
func goCommand(experiment string, args ...string) error {
	cmd := exec.Command("go", args...)
	if experiment != "" {
		cmd.Env = append(os.Environ(), "GOEXPERIMENT="+experiment)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
