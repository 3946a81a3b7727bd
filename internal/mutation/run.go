package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A suite is tests that try mutants.
type suite struct {
	pkg  string
	args []string
}

// A built suite is a program that holds the mutants of a package.
type built struct {
	suite
	binary, dir string
	takes       time.Duration // without a mutant
}

// An end is what became of a mutant.
type end string

const (
	killed   end = "killed"
	hung     end = "hung" // twice, the second time with twice as long
	survived end = "survived"
	unseen   end = "not reached"
	untried  end = "not tried"
)

// build makes the program of a suite.
func build(ctx context.Context, root, work string, s *source, tests suite) (*built, error) {
	replace := map[string]string{}
	for name, text := range s.overlay {
		replace[name] = filepath.Join(work, filepath.Base(name))
		if err := os.WriteFile(replace[name], []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	overlay := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return nil, err
	}
	b := &built{suite: tests, dir: filepath.Join(root, tests.pkg), binary: filepath.Join(work, strings.ReplaceAll(tests.pkg, "/", "-")+".test")}
	building.Lock()
	defer building.Unlock()
	if _, err := os.Stat(b.binary); err == nil { // for other arguments
		return b.measure(ctx, work)
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", b.binary, ".")
	cmd.Dir = b.dir // which may be in a module of its own
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	return b.measure(ctx, work)
}

var building sync.Mutex

// measure finds out how long the tests take without a mutant.
func (b *built) measure(ctx context.Context, work string) (*built, error) {
	began := time.Now()
	if out, _, failed := b.try(ctx, 0, work, 5*time.Minute); failed {
		return nil, fmt.Errorf("%s fails without a mutant: %s", b.pkg, out)
	}
	b.takes = time.Since(began)
	return b, nil
}

// try runs the tests with a mutant in force.
func (b *built) try(ctx context.Context, id int, work string, limit time.Duration) (out []byte, reached, failed bool) {
	mark := filepath.Join(work, fmt.Sprint("reached ", id))
	defer os.Remove(mark)
	cmd := exec.CommandContext(ctx, b.binary, slices.Concat([]string{"-test.short", "-test.failfast", "-test.timeout", limit.String()}, b.args)...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), fmt.Sprint("MUTANT=", id), "MUTANT_REACHED="+mark)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	_, missed := os.Stat(mark)
	return out, missed == nil, err != nil
}

// patience is what tests may take longer with a mutant, besides several times as long.
var patience = 10 * time.Second

// judge tries a mutant with the suites in turn, until one kills it.
func judge(ctx context.Context, m mutant, suites []func() (*built, error), work string) (end, error) {
	result := unseen
	for _, suite := range suites {
		b, err := suite()
		if err != nil {
			return untried, err
		}
		limit := patience + 3*b.takes
		out, reached, failed := b.try(ctx, m.id, work, limit)
		if ctx.Err() != nil {
			return untried, nil
		}
		isLate := func(out []byte) bool { return bytes.Contains(out, []byte("panic: test timed out")) }
		switch {
		case failed && !isLate(out):
			return killed, nil
		case failed:
			if out, _, failed := b.try(ctx, m.id, work, 2*limit); failed && isLate(out) {
				return hung, nil
			} else if failed {
				return killed, nil
			}
			result = survived
		case reached:
			result = survived
		}
	}
	return result, nil
}
