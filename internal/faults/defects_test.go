package faults

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var defectsFlag = flag.Bool("defects", false, "show that the schedules find each of the seeded defects")

// A defect is a wrong policy, as a change of the library's text.
type defect struct {
	workload string // that it shows in
	name     string
	file     string // below the module
	old, new string
	caught   []invariant // by any of which
}

var defects = slices.Concat(refundDefects, resultDefects, boundDefects)

// TestDefectsApply notices a defect whose place in the library has changed.
func TestDefectsApply(t *testing.T) {
	for _, d := range defects {
		t.Run(strings.ReplaceAll(d.name, " ", "_"), func(t *testing.T) { d.apply(t, filepath.Join("..", "..")) })
	}
}

// apply returns the file with the defect in it.
func (d defect) apply(t *testing.T, root string) string {
	text, err := os.ReadFile(filepath.Join(root, d.file))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), d.old); n != 1 {
		t.Fatalf("%s holds the text of the defect %d times", d.file, n)
	}
	return strings.Replace(string(text), d.old, d.new, 1)
}

// TestDefects builds the library with each defect in turn and runs schedules
// until one of them finds it.
func TestDefects(t *testing.T) {
	if !*defectsFlag {
		t.Skip("builds the library anew for each defect: run with -defects")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	places := make(chan struct{}, 2)
	for _, d := range defects {
		t.Run(strings.ReplaceAll(d.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			began := time.Now()
			all, seen := d.catch(t, root)
			i := slices.IndexFunc(all, func(by invariant) bool { return slices.Contains(d.caught, by) })
			if i < 0 {
				t.Fatalf("caught by %q, want one of %q:\n%s", all, d.caught, seen)
			}
			t.Logf("%-12s caught in %4.1fs: %s", all[i], time.Since(began).Seconds(), d.name)
		})
	}
}

var caughtBy = regexp.MustCompile(`seed \d+: ([a-z ]+): `)

// catch returns the invariants that schedules saw violated by the defect, and
// what they printed.
func (d defect) catch(t *testing.T, root string) (by []invariant, printed string) {
	text := d.apply(t, root)
	source := filepath.Join(root, d.file)
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{source: changed}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, changed, text)
	write(t, overlay, string(replace))
	cmd := exec.Command("go", "test", "-overlay", overlay, "-vet=off", "-count=1", "-timeout=60s", "./internal/faults",
		"-run", "^TestSchedules$", "-workload", d.workload, "-schedules", fmt.Sprint(*schedules))
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil, string(out)
	}
	for _, found := range caughtBy.FindAllSubmatch(out, -1) {
		by = append(by, invariant(found[1]))
	}
	return by, string(out)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
