// Mutation changes the library in small ways, one at a time, and finds the changes
// that no test notices: "<" becomes "<=" or ">=", "==" becomes "!=", "&&" becomes "||",
// "+" becomes "-", "*" becomes "/", "++" becomes "--", and "-x" becomes "x".
//
//	go run ./internal/mutation                     all of it
//	go run ./internal/mutation refunds             one package
//	go run ./internal/mutation -changed HEAD^      what differs from a commit
//	go run ./internal/mutation -for 3m …           no longer than that
//
// A mutant is tried by the tests of its package with -short, and then by those of
// other packages, such as fault schedules. It fails if fewer than 95 of 100 are
// killed, or if one survives that survivors.txt does not name with its reason. A
// mutant that hangs the tests twice is killed.
//
// All mutants of a package are built into one program, and each run says which of them
// is in force. A generic tester, gremlins v0.6.0, builds the tests once for each, has
// no mutants in the conditions of a switch, and counts as killed what does not compile.
package main

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// A target is code whose mutants are tried.
type target struct {
	pkg    string
	files  []string // patterns; nil: all
	suites []suite
}

var targets = []target{
	{"refunds", nil, []suite{{"refunds", nil}, {"internal/conformance/matrix", nil}, {"internal/faults", faults("submits")}, {"internal/faults", faults("submitAll")}}},
	{"updater", []string{"resume.go", "file_run.go"}, []suite{{"updater", nil}, {"internal/faults", faults("downloads")}, {"internal/faults", faults("files")}}},
	{"bins", []string{"correlate*.go"}, []suite{{"bins", nil}, {"internal/faults", faults("bulk")}, {"internal/faults", faults("loads")}}},
	{"internal/transport", nil, []suite{{"internal/transport", nil}, {"internal/conformance/matrix", nil}, {"refunds", nil}, {"bins", nil}, {"updater", nil}, {"internal/faults", faults("")}}},
}

// faults are schedules of one workload, always the same.
func faults(workload string) []string {
	return []string{"-test.run", "^(TestSchedules|TestParts|TestLiveness)$", "-workload", workload, "-schedules", "900", "-seed", "1", "-shrink=false"}
}

//go:embed survivors.txt
var survivorsText string

const enough = 95 // percent of the mutants are to be killed

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "FAILED:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mutation", flag.ContinueOnError)
	changed := flags.String("changed", "", "try only what differs from this commit")
	limit := flags.Duration("for", 0, "begin no mutant after this time; 0: none")
	workers := flags.Int("workers", runtime.GOMAXPROCS(0), "mutants tried at a time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	until := time.Now().Add(1000 * time.Hour)
	if *limit > 0 {
		until = time.Now().Add(*limit)
	}
	root, err := output("git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	known := survivors()
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\tmutants\tkilled\tof these hung\tsurvivors\tnot reached\tnot tried\tkilled %%\ttook\t\n")
	failed := false
	for _, t := range targets {
		if flags.NArg() > 0 && !slices.Contains(flags.Args(), t.pkg) {
			continue
		}
		began := time.Now()
		ends, err := t.try(ctx, strings.TrimSpace(string(root)), *changed, until, *workers, known)
		if err != nil {
			return err
		}
		count := map[end]int{}
		for m, e := range ends {
			count[e]++
			if _, listed := known[m.name]; (e == survived || e == unseen) && !listed {
				failed = true
			} else if listed && (e == killed || e == hung) && *changed == "" {
				fmt.Printf("killed, and listed as a survivor: %s\n", m.name)
			}
		}
		dead, tried := count[killed]+count[hung], len(ends)-count[untried]
		share := 100.0
		if tried > 0 {
			share = 100 * float64(dead) / float64(tried)
		}
		failed = failed || *changed == "" && share < enough
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f\t%v\t\n", t.pkg, len(ends), dead, count[hung], count[survived], count[unseen], count[untried], share, time.Since(began).Round(time.Second))
	}
	table.Flush()
	if failed {
		return errors.New("mutants survive that survivors.txt does not name, or too many do")
	}
	return nil
}

// try tries the mutants of a target.
func (t target) try(ctx context.Context, root, changed string, until time.Time, workers int, known map[string]string) (map[mutant]end, error) {
	s, err := mutate(root, t.pkg, func(file string) bool {
		return len(t.files) == 0 || slices.ContainsFunc(t.files, func(pattern string) bool { ok, _ := path.Match(pattern, file); return ok })
	})
	if err != nil {
		return nil, err
	}
	mutants := s.mutants
	if changed != "" {
		touched, err := changedLines(root, changed, t.pkg)
		if err != nil {
			return nil, err
		}
		mutants = slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool {
			file, _, _ := strings.Cut(m.name, " ")
			return touched != nil && !touched[fmt.Sprint(file, ":", m.line)]
		})
	}
	ends := map[mutant]end{}
	if len(mutants) == 0 {
		return ends, nil
	}
	work, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	var suites []func() (*built, error) // each is built when a mutant has survived those before
	for _, tests := range t.suites {
		suites = append(suites, sync.OnceValues(func() (*built, error) { return build(ctx, root, work, s, tests) }))
	}
	next := make(chan mutant)
	go func() {
		defer close(next)
		for _, m := range mutants {
			next <- m
		}
	}()
	var mu sync.Mutex
	var all sync.WaitGroup
	var failed error
	for range workers {
		all.Go(func() {
			for m := range next {
				e, err := untried, error(nil)
				mu.Lock()
				over := ctx.Err() != nil || failed != nil || time.Now().After(until)
				mu.Unlock()
				if !over {
					e, err = judge(ctx, m, suites, work)
				}
				mu.Lock()
				ends[m] = e
				if _, listed := known[m.name]; (e == survived || e == unseen) && !listed {
					fmt.Printf("%s: %s (line %d): %s\n", e, m.name, m.line, m.was)
				}
				failed = cmp.Or(failed, err)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return ends, failed // what was not tried for an interruption is told as such
}

// survivors are the mutants that no test can or need kill, with their reasons.
func survivors() map[string]string {
	known := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(survivorsText))
	for lines.Scan() {
		if name, reason, ok := strings.Cut(lines.Text(), ": "); ok && !strings.HasPrefix(name, "#") {
			known[name] = reason
		}
	}
	return known
}

// changedLines names the lines of a package, as file:line, that differ from a commit.
func changedLines(root, base, pkg string) (map[string]bool, error) {
	if _, err := output("git", "-C", root, "rev-parse", "--quiet", "--verify", base+"^{commit}"); err != nil {
		return nil, nil // in a clone without history everything is new
	}
	text, err := output("git", "-C", root, "diff", "--unified=0", "--no-color", base, "--", pkg)
	if err != nil {
		return nil, err
	}
	lines, file := map[string]bool{}, ""
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "+++ b/"); ok {
			file = strings.TrimSpace(name)
		}
		if !strings.HasPrefix(line, "@@ ") {
			continue
		}
		_, added, _ := strings.Cut(line, "+")
		at, length, many := strings.Cut(strings.Fields(added)[0], ",")
		first, _ := strconv.Atoi(at)
		n := 1
		if many {
			n, _ = strconv.Atoi(length)
		}
		for i := range n {
			lines[fmt.Sprint(file, ":", first+i)] = true
		}
	}
	return lines, nil
}

func output(name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	return text, nil
}
