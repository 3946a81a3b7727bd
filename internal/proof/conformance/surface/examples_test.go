package surface_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var exampleFunction = regexp.MustCompile(`(?m)^func Example`)

// TestExamplesCopiedOut copies every Example out of the repository, as a user
// does, and runs them in a module of its own.
func TestExamplesCopiedOut(t *testing.T) {
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	module := t.TempDir()
	copied := 0
	for _, pkg := range []string{"bins", "bins/binstest", "refunds", "refunds/refundstest", "updater", "updater/updatertest"} {
		files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !exampleFunction.Match(code) {
				continue
			}
			copied++
			dir := filepath.Join(module, pkg)
			if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, filepath.Base(file)), code, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if copied < 6 {
		t.Fatalf("found %d files of examples", copied)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	const library = "github.com/carddata/carddata-go"
	text := strings.Replace(string(mod), "module "+library, "module example.com/copied", 1) +
		"\nrequire " + library + " v0.0.0\nreplace " + library + " => " + root + "\n"
	if err := errors.Join(os.WriteFile(filepath.Join(module, "go.mod"), []byte(text), 0o644),
		os.WriteFile(filepath.Join(module, "go.sum"), sum, 0o644)); err != nil {
		t.Fatal(err)
	}
	// vet looks for the examples' packages beside them.
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-mod=mod", "-run", "^Example", "./...")
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%d files\n%s", copied, out)
}
