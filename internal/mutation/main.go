// Mutation changes the library in small ways, one at a time, and finds the changes
// that no test notices:
//
//	boundary    a < b             a <= b
//	negation    a < b, a == b     a >= b, a != b
//	logic       a && b            a || b
//	not         if f(x), !done    if !f(x), done
//	arithmetic  a + b, a % b, -a  a - b, a * b, a
//	step        n++               n--
//	constant    http.StatusOK     the next one of its kind
//	removal     a statement that calls, assigns or defers
//	zero        return x, err     the zero value in place of one of them
//
// What nobody can notice is left alone: locks, capacities, timers that nobody waits
// for, and references dropped for the garbage collector.
//
//	go -C internal/mutation run .                      all of it
//	go -C internal/mutation run . refunds              one package
//	go -C internal/mutation run . -changed HEAD^       what differs from a commit
//	go -C internal/mutation run . -only bulkRun.send   those whose name this matches
//	go -C internal/mutation run . -own …               with the tests of its own package alone
//	go -C internal/mutation run . -for 3m …            no longer than that: a sample
//
// A mutant is tried by those tests of its package that reach it, with -short, then by
// some seconds of those of other packages, and by fault schedules. One that times out
// and, with twice the time, times out again is killed: it hangs. It fails if a mutant
// survives that survivors.txt does not name with its reason, or, of whole packages, if
// fewer than 95 of 100 are killed, apart from the equivalent ones.
//
// With -changed it tells of every survivor that is not named, and fails if there are
// more than four and more than a third, as there may be time for a few only. What cannot
// be tried in time, or on this machine, is told and no failure; so is a clone without
// the commit.
//
// All mutants of a package are built into one program, and each run says which of them
// is in force. A generic tester, gremlins v0.6.0, builds the tests once for each, has
// no mutants in the conditions of a switch, and counts as killed what does not compile.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
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
	{"updater", []string{"resume.go", "partial*.go", "file_run.go", "metadata.go"}, []suite{{"updater", nil}, {"internal/faults", faults("downloads")}, {"internal/faults", faults("files")}}},
	{"bins", []string{"correlate*.go", "identifier*.go", "decode*.go"}, []suite{{"bins", nil}, {"internal/drift", nil}, {"internal/faults", faults("bulk")}, {"internal/faults", faults("loads")}}},
	{"internal/transport", nil, []suite{{"internal/transport", nil}, {"internal/conformance/matrix", nil}, {"internal/drift", nil}, {"internal/conformance/origin", nil}, {"refunds", nil}, {"bins", nil}, {"updater", nil}, {"internal/faults", faults("")}}},
}

// faults are schedules of one workload, always the same.
func faults(workload string) []string {
	return []string{"-test.run", "^(TestSchedules|TestParts|TestLiveness)$", "-workload", workload, "-schedules", "400", "-seed", "1", "-shrink=false"}
}

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
	only := flags.String("only", "", "try only mutants whose name this `expression` matches")
	limit := flags.Duration("for", 0, "begin no mutant after this time, and stop those under way soon after; 0: none")
	own := flags.Bool("own", false, "try with the tests of the mutants' own package alone")
	verbose := flags.Bool("v", false, "tell of every mutant")
	workers := flags.Int("workers", runtime.GOMAXPROCS(0), "mutants tried at a time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	names, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	module, err := output(ctx, "go", "env", "GOMOD")
	if err != nil {
		return err
	}
	t := &tester{root: filepath.Join(filepath.Dir(strings.TrimSpace(string(module))), "..", ".."), workers: *workers, only: names, known: survivors(), lenient: *changed != "", verbose: *verbose, own: *own}
	if *changed != "" {
		if t.touched, err = changedLines(ctx, t.root, *changed); err != nil {
			fmt.Printf("nothing tried: there is no commit %s here to compare with, as in a shallow clone\n", *changed)
			return nil
		}
	}
	until := time.Now().Add(1000 * time.Hour)
	if *limit > 0 {
		until = time.Now().Add(*limit)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, until.Add(10*time.Second))
		defer cancel()
	}
	var chosen []*source
	for _, target := range targets {
		if flags.NArg() > 0 && !slices.Contains(flags.Args(), target.pkg) {
			continue
		}
		s, err := t.mutants(ctx, target)
		if err != nil && !t.lenient {
			return err
		} else if err != nil {
			fmt.Printf("%s: not tried: %v\n", target.pkg, err)
		} else if len(s.mutants) > 0 {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) == 0 {
		fmt.Println("no mutants: nothing changed where there would be some")
		return nil
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\tmutants\tkilled\tof these hung\tsurvived\tof these equivalent\tnot listed\tnot tried\tkilled %%\twithout equivalent ones %%\ttook\t\n")
	failed := false
	for i, s := range chosen {
		began := time.Now()
		ends, err := t.try(ctx, s, began.Add(time.Until(until)/time.Duration(len(chosen)-i)))
		if err != nil && !t.lenient {
			return err
		} else if err != nil {
			fmt.Printf("%s: not tried: %v\n", s.target.pkg, err)
		}
		c := t.count(s, ends)
		if t.lenient {
			failed = failed || c.unlisted > max(4, (c.killed+c.unlisted)/3)
		} else {
			failed = failed || c.unlisted > 0 || *only == "" && c.fair < enough
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f\t%.1f\t%v\t\n", s.target.pkg, len(s.mutants), c.killed, c.hung, c.survived, c.equivalent, c.unlisted,
			c.untried, c.share, c.fair, time.Since(began).Round(time.Second))
	}
	table.Flush()
	if failed {
		return errors.New("mutants survive that survivors.txt does not name, or too many do")
	}
	return nil
}

// Counts are of the ends of a package's mutants.
type counts struct {
	killed, hung, survived, equivalent, unlisted, untried int
	share, fair                                           float64 // percent killed, of all and without the equivalent ones
}

func (t *tester) count(s *source, ends map[int]end) (c counts) {
	for _, m := range s.mutants {
		reason, listed := t.known[m.name]
		switch ends[m.id] {
		case hung:
			c.hung++
			fallthrough
		case killed:
			c.killed++
			if listed && !t.lenient {
				fmt.Printf("killed, and listed as a survivor: %s\n", m.name)
			}
		case survived, unseen:
			c.survived++
			if strings.HasPrefix(reason, "equivalent") {
				c.equivalent++
			}
			if !listed {
				c.unlisted++
			}
		default:
			c.untried++
		}
	}
	c.share, c.fair = 100, 100
	if tried := c.killed + c.survived; tried > c.equivalent {
		c.share, c.fair = 100*float64(c.killed)/float64(tried), 100*float64(c.killed)/float64(tried-c.equivalent)
	}
	return c
}

// mutants makes the mutants of a target that are to be tried.
func (t *tester) mutants(ctx context.Context, of target) (*source, error) {
	s, err := mutate(ctx, t.root, of.pkg, func(file string) bool {
		return len(of.files) == 0 || slices.ContainsFunc(of.files, func(pattern string) bool { ok, _ := path.Match(pattern, file); return ok })
	})
	if err != nil {
		return nil, err
	}
	if t.own {
		of.suites = of.suites[:1]
	}
	s.target = of
	s.mutants = slices.DeleteFunc(s.mutants, func(m mutant) bool {
		_, listed := t.known[m.name]
		return t.lenient && listed || t.touched != nil && !t.touched[fmt.Sprint(m.file, ":", m.line)] || t.only != nil && !t.only.MatchString(m.name)
	})
	return s, nil
}

// changedLines names the lines, as file:line, that differ from a commit.
func changedLines(ctx context.Context, root, base string) (map[string]bool, error) {
	// The clone may belong to another user, as in CI.
	git := []string{"-c", "safe.directory=" + root, "-C", root}
	if _, err := output(ctx, "git", slices.Concat(git, []string{"rev-parse", "--quiet", "--verify", base + "^{commit}"})...); err != nil {
		return nil, err
	}
	text, err := output(ctx, "git", slices.Concat(git, []string{"diff", "--unified=0", "--no-color", "--no-ext-diff", "--src-prefix=a/", "--dst-prefix=b/", base, "--", "*.go"})...)
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

func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr, cmd.WaitDelay = os.Stderr, time.Second
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	return text, nil
}
