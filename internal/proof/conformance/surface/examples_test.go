package surface_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	exampleFunction = regexp.MustCompile(`(?m)^func Example`)
	readmeProgram   = regexp.MustCompile("(?s)\n```go\n(package main\n.*?)```\n")
	pageProgram     = regexp.MustCompile(`(?m)^//\tpackage main\n(?://(?:\t.*)?\n)+`) // of a package comment
)

// TestCopiedOut copies every Example and every program of the README and of the package comments
// out of the repository, as a user does, and runs the Examples and builds the programs in a module
// of its own.
func TestCopiedOut(t *testing.T) {
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	module := t.TempDir()
	write := func(code []byte, path ...string) {
		t.Helper()
		name := filepath.Join(module, filepath.Join(path...))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, code, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	programs := 0
	for _, code := range readmeProgram.FindAllStringSubmatch(read(t, "README.md"), -1) {
		programs++
		write([]byte(code[1]), fmt.Sprint("readme", programs), "main.go")
	}
	for _, pkg := range []string{"bins", "refunds", "updater"} {
		for _, code := range pageProgram.FindAllString(read(t, pkg+"/doc.go"), -1) {
			programs++
			code = regexp.MustCompile(`(?m)^//\t?`).ReplaceAllString(code, "")
			write([]byte(code), "page"+pkg, "main.go")
		}
	}
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
			write(code, pkg, filepath.Base(file))
		}
	}
	if copied < 6 || programs == 0 {
		t.Fatalf("found %d files of examples, and %d programs", copied, programs)
	}
	text := strings.Replace(read(t, "go.mod"), "module "+library, "module example.com/copied", 1) +
		"\nrequire " + library + " v0.0.0\nreplace " + library + " => " + root + "\n"
	write([]byte(text), "go.mod")
	write([]byte(read(t, "go.sum")), "go.sum")
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
