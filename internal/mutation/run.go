package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A tester tries mutants.
type tester struct {
	root    string
	workers int
	only    *regexp.Regexp
	touched map[string]bool // file:line; nil: all
	known   map[string]string
	lenient bool // what cannot be tried is no failure
	verbose bool
	own     bool // without tests of other packages
}

// A suite is tests that try mutants.
type suite struct {
	pkg  string
	args []string
}

// A built suite is a program that holds the mutants of a package.
type built struct {
	suite
	binary, dir string
	whole       measured
	tests       []measured // each by itself, if there are many mutants to be tried
}

// Measured tests are known for how long they take without a mutant, and which of the
// mutants they reach.
type measured struct {
	name    string
	takes   time.Duration
	reaches map[int]bool
}

// An end is what became of a mutant.
type end string

const (
	killed   end = "killed"
	hung     end = "hung" // twice, the second time with twice as long
	survived end = "survived"
	unseen   end = "not reached"
	untried  end = ""
)

// many mutants make it worth while to find out which tests reach which of them.
const many = 40

// try tries the mutants of a package, in an order that is always the same and from
// all over it, so that those that there is time for are a fair sample.
func (t *tester) try(ctx context.Context, s *source, until time.Time) (map[int]end, error) {
	work, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	if err := os.Chmod(work, 0o755); err != nil { // some tests act as another user
		return nil, err
	}
	j := &judge{tester: t, source: s, work: work}
	for _, tests := range s.target.suites { // each is built when a mutant has survived those before
		j.suites = append(j.suites, sync.OnceValues(func() (*built, error) { return j.build(ctx, tests) }))
	}
	order := slices.Clone(s.mutants)
	slices.SortStableFunc(order, func(a, b mutant) int { return cmp.Compare(hash(a.name), hash(b.name)) })
	next := make(chan mutant, len(order))
	for _, m := range order {
		next <- m
	}
	close(next)
	var mu sync.Mutex
	var all sync.WaitGroup
	var failed error
	ends := map[int]end{}
	for range t.workers {
		all.Go(func() {
			for m := range next {
				mu.Lock()
				over := ctx.Err() != nil || failed != nil || time.Now().After(until)
				mu.Unlock()
				if over {
					return
				}
				began := time.Now()
				e, err := j.judge(ctx, m)
				if t.lenient && (e == survived || e == unseen) { // it may take more than one try to be noticed
					e, err = j.judge(ctx, m)
				}
				mu.Lock()
				if ctx.Err() == nil {
					ends[m.id], failed = e, cmp.Or(failed, err)
				}
				if reason := t.known[m.name]; t.verbose || (e == survived || e == unseen) && reason == "" {
					fmt.Printf("%s: %s (%s:%d, %.1fs)\n", e, m.name, m.file, m.line, time.Since(began).Seconds())
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return ends, failed
}

func hash(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}

// A judge tries the mutants of one package.
type judge struct {
	*tester
	source   *source
	work     string
	suites   []func() (*built, error)
	building sync.Mutex
}

// build makes the program of a suite.
func (j *judge) build(ctx context.Context, tests suite) (*built, error) {
	j.building.Lock()
	defer j.building.Unlock()
	replace := map[string]string{}
	for name, text := range j.source.overlay {
		replace[name] = filepath.Join(j.work, filepath.Base(name))
		if err := os.WriteFile(replace[name], []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	overlay := filepath.Join(j.work, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return nil, err
	}
	b := &built{suite: tests, dir: filepath.Join(j.root, tests.pkg), binary: filepath.Join(j.work, strings.ReplaceAll(tests.pkg, "/", "-")+".test")}
	if _, err := os.Stat(b.binary); err != nil { // or it is there for other arguments
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", b.binary, ".")
		cmd.Dir, cmd.WaitDelay = b.dir, time.Second // the directory may be in a module of its own
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", cmd, err, out)
		}
	}
	if tests.args != nil || len(j.source.mutants) < many {
		if b.whole, err = j.measure(ctx, b, ""); err == nil || tests.args != nil {
			return b, err
		}
	}
	return b, j.measureEach(ctx, b)
}

// measure runs tests without a mutant.
func (j *judge) measure(ctx context.Context, b *built, name string) (measured, error) {
	m := measured{name: name, reaches: map[int]bool{}}
	began := time.Now()
	out, reached, failed := j.run(ctx, b, -1, name, 5*time.Minute)
	if failed {
		return m, fmt.Errorf("%s %s fails without a mutant: %s", b.pkg, name, out)
	}
	m.takes = time.Since(began)
	for id := range strings.FieldsSeq(string(reached)) {
		n, _ := strconv.Atoi(id)
		m.reaches[n] = true
	}
	return m, nil
}

// measureEach runs each test by itself. One that fails without a mutant, such as one
// that counts what it costs, is left out.
func (j *judge) measureEach(ctx context.Context, b *built) error {
	cmd := exec.CommandContext(ctx, b.binary, "-test.list", "^(Test|Example|Fuzz)")
	cmd.Dir, cmd.WaitDelay = b.dir, time.Second
	list, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", cmd, err)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	slots := make(chan bool, j.workers)
	for name := range strings.FieldsSeq(string(list)) {
		slots <- true
		all.Go(func() {
			defer func() { <-slots }()
			m, failed := j.measure(ctx, b, name)
			mu.Lock()
			defer mu.Unlock()
			if err = cmp.Or(err, failed); failed == nil {
				b.tests = append(b.tests, m)
			} else if ctx.Err() == nil {
				fmt.Println("left out:", failed)
			}
		})
	}
	all.Wait()
	if len(b.tests) == 0 {
		return err
	}
	return ctx.Err()
}

// run runs tests, all or those of a name, with a mutant in force; -1: without, to
// learn which of them are reached.
func (j *judge) run(ctx context.Context, b *built, id int, names string, limit time.Duration) (out, reached []byte, failed bool) {
	mark, err := os.CreateTemp(j.work, "reached-")
	if err != nil {
		return []byte(err.Error()), nil, true
	}
	mark.Close()
	defer os.Remove(mark.Name())
	args := slices.Concat([]string{"-test.short", "-test.failfast", "-test.timeout", limit.String()}, b.args)
	if names != "" {
		args = append(args, "-test.run", "^("+names+")$")
	}
	// A mutant may ask for memory without end.
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `ulimit -v 8000000; exec "$0" "$@"`, b.binary}, args...)...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), fmt.Sprint("MUTANT=", id), "MUTANT_REACHED="+mark.Name(), "TMPDIR="+j.work)
	cmd.WaitDelay = time.Second
	out, err = cmd.CombinedOutput()
	reached, _ = os.ReadFile(mark.Name())
	return out, reached, err != nil
}

// patience is what tests may take longer with a mutant, besides several times as long.
var patience = 2 * time.Second

// judge tries a mutant with the suites in turn, until one kills it.
func (j *judge) judge(ctx context.Context, m mutant) (end, error) {
	result := unseen
	for i, suite := range j.suites {
		b, err := suite()
		if err != nil {
			return untried, err
		}
		for _, tests := range b.parts(m, i == 0) {
			if e := j.with(ctx, b, m, tests); e != survived {
				return e, nil
			}
			result = survived
		}
	}
	return result, nil
}

// elsewhere is for how long the tests of another package try a mutant, the quickest first.
const elsewhere = 4 * time.Second

// parts are the tests that reach a mutant: the quick ones first.
func (b *built) parts(m mutant, own bool) (parts []measured) {
	if b.tests == nil {
		if b.whole.reaches[m.id] {
			parts = append(parts, b.whole)
		}
		return parts
	}
	var quick, slow measured
	reaching := slices.DeleteFunc(slices.Clone(b.tests), func(t measured) bool { return !t.reaches[m.id] })
	slices.SortFunc(reaching, func(a, b measured) int { return cmp.Compare(a.takes, b.takes) })
	for i, t := range reaching {
		if !own && quick.takes+slow.takes > elsewhere {
			break
		}
		part := &quick
		if i > len(reaching)/2 {
			part = &slow
		}
		part.name, part.takes = strings.Trim(part.name+"|"+t.name, "|"), part.takes+t.takes
	}
	for _, part := range []measured{quick, slow} {
		if part.name != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// with tries a mutant with some tests.
func (j *judge) with(ctx context.Context, b *built, m mutant, tests measured) end {
	limit := patience + 5*tests.takes
	isLate := func(out []byte) bool { return bytes.Contains(out, []byte("panic: test timed out")) }
	out, _, failed := j.run(ctx, b, m.id, tests.name, limit)
	if failed && isLate(out) {
		if out, _, failed = j.run(ctx, b, m.id, tests.name, 2*limit); failed && isLate(out) {
			return hung
		}
	}
	if failed {
		return killed
	}
	return survived
}
