package faults

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/faults/edit"
)

var defectsFlag = flag.Bool("defects", false, "show that the schedules find each of the seeded defects")

// enough schedules find each of the defects.
const enough = 6000

// A defect is a wrong policy, as edits of a declaration of the library.
type defect struct {
	workload string // that it shows in
	name     string
	in       target
	edits    []edit.Edit
	caught   []invariant // by any of which
}

var defects = slices.Concat(refundDefects, resultDefects, boundDefects, livenessDefects, partDefects)

// TestDefectsApply notices a defect whose place in the library has changed,
// before anything is built.
func TestDefectsApply(t *testing.T) {
	if !*defectsFlag {
		t.Skip("edits the library: run with -defects")
	}
	for _, d := range defects {
		t.Run(strings.ReplaceAll(d.name, " ", "_"), func(t *testing.T) { d.apply(t, filepath.Join("..", "..")) })
	}
}

// apply returns the files that hold the defect.
func (d defect) apply(t *testing.T, root string) map[string]string {
	p, err := edit.Parse(filepath.Join(root, d.in.dir))
	if err != nil {
		t.Fatal(err)
	}
	changed, err := p.Apply(d.in.name, d.edits)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// TestDefects builds the library with each defect in turn and runs schedules
// until one of them finds it. The schedule that did finds it again.
func TestDefects(t *testing.T) {
	if !*defectsFlag {
		t.Skip("builds the library anew for each defect: run with -defects")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	places := make(chan struct{}, 2)
	var again, runs atomic.Int64
	t.Run("each", func(t *testing.T) {
		for _, d := range defects {
			t.Run(strings.ReplaceAll(d.name, " ", "_"), func(t *testing.T) {
				t.Parallel()
				places <- struct{}{}
				defer func() { <-places }()
				began := time.Now()
				binary := d.build(t, root)
				out := d.run(t, binary, "-schedules", fmt.Sprint(max(*schedules, enough)))
				for _, seed := range []string{"1000001", "2000001", "3000001"} {
					// Go 1.26 can fail so where it ends a bubble whose goroutines are stuck.
					if strings.Contains(out, "fatal error: bad g->status") {
						out = d.run(t, binary, "-schedules", fmt.Sprint(max(*schedules, enough)), "-seed", seed)
					}
				}
				for _, found := range caughtBy.FindAllStringSubmatch(out, -1) {
					if by := invariant(found[2]); slices.Contains(d.caught, by) {
						n := strings.Count("\n"+d.run(t, binary, "-schedules", "1", "-seed", found[1], "-test.count", "10"), "\n--- FAIL: Test")
						again.Add(int64(n))
						runs.Add(10)
						t.Logf("%-12s caught in %4.1fs, and again in %2d of 10: %s", by, time.Since(began).Seconds(), n, d.name)
						return
					}
				}
				t.Fatalf("not caught by any of %q:\n%s", d.caught, out)
			})
		}
	})
	if n := runs.Load(); n > 0 {
		t.Logf("a failing seed fails again in %.1f %% of %d runs", 100*float64(again.Load())/float64(n), n)
		if again.Load()*10 < n*9 {
			t.Error("want 90 %")
		}
	}
}

var caughtBy = regexp.MustCompile(`seed (\d+): ([a-z ]+): `)

// build makes the tests of this package, with the defect in the library.
func (d defect) build(t *testing.T, root string) (binary string) {
	dir := t.TempDir()
	replaced := map[string]string{}
	for source, text := range d.apply(t, root) {
		replaced[source] = filepath.Join(dir, filepath.Base(source))
		write(t, replaced[source], text)
	}
	replace, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	write(t, overlay, string(replace))
	binary = filepath.Join(dir, "faults.test")
	cmd := exec.Command("go", "test", "-c", "-o", binary, "-overlay", overlay, "-vet=off", "./internal/faults")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

// run runs schedules with the defect, and returns what they printed.
func (d defect) run(t *testing.T, binary string, args ...string) string {
	which := []string{"-test.run", "^TestSchedules$", "-workload", d.workload}
	switch d.workload {
	case liveness:
		which = []string{"-test.run", "^TestLiveness$"}
	case misbehaving:
		which = []string{"-test.run", "^TestParts$"}
	}
	args = slices.Concat(which, []string{"-test.timeout", "60s", "-shrink=false"}, args)
	cmd := exec.Command(binary, args...)
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		t.Fatal(err)
	}
	return string(out)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
