package main

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"nothing"}, {"files", "x"}, {"coverage", "x"}, {"coverage", "x", "y", "z"}, {"readme"}, {"zip", "x"}, {"fuzz", "x"}, {"vulnerabilities", "x"}} {
		if err := run(t.Context(), new(bytes.Buffer), args); !errors.Is(err, errUsage) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestFilesFindsBinariesAndLargeFiles(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	t.Chdir(t.TempDir())
	if out, err := exec.Command("git", "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for name, f := range map[string]struct {
		content string
		mode    os.FileMode
	}{
		"source.go": {"package x", 0o644}, "script": {"#!/bin/sh\n", 0o755}, ".gitignore": {"ignored\n", 0o644}, "ignored": {"\x7fELF", 0o755},
		"program": {"\x7fELF\x02", 0o644}, "program.exe": {"MZ\x90", 0o644}, "mach o": {"\xcf\xfa\xed\xfe", 0o644}, "module.bin": {"\x00asm", 0o644},
		"text": {"no script", 0o755}, "large": {strings.Repeat("x", maxTracked+1), 0o644}, "limit": {strings.Repeat("x", maxTracked), 0o644},
	} {
		if err := os.WriteFile(name, []byte(f.content), f.mode); err != nil {
			t.Fatal(err)
		}
	}
	// Tracked or about to be makes no difference, nor does a file that is gone.
	if out, err := exec.Command("git", "add", "program", "source.go").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if err := os.Remove("source.go"); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), new(bytes.Buffer), []string{"files"})
	if err == nil {
		t.Fatal("nothing was found")
	}
	var found []string
	for line := range strings.Lines(err.Error()) {
		name, _, _ := strings.Cut(line, ":")
		found = append(found, name)
	}
	slices.Sort(found)
	if want := []string{"large", "mach o", "module.bin", "program", "program.exe", "text"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}

// TestZip counts what a user of the module downloads, and nothing of the modules
// inside it.
func TestZip(t *testing.T) {
	names := []string{"go.mod", "a.go", "b/go.mod", "b/large", "b/c/d.go", "bc/e.go", "f/x.go.mod"}
	if got, want := ofModule(names), []string{"go.mod", "a.go", "bc/e.go", "f/x.go.mod"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	t.Chdir(t.TempDir())
	noise := make([]byte, maxZip) // which no zip makes smaller
	rand.NewChaCha8([32]byte{}).Read(noise)
	if err := os.WriteFile("noise", noise, 0o600); err != nil {
		t.Fatal(err)
	}
	if size, err := zipSize("m@v1", []string{"noise"}); err != nil || size < maxZip || size > maxZip+1000 {
		t.Errorf("%d bytes, %v", size, err)
	}
}

func TestCoverageCountsABlockOnce(t *testing.T) {
	found, err := readProfile(strings.NewReader(`mode: set
example.com/m/a/x.go:1.1,2.2 3 0
example.com/m/a/x.go:5.1,6.2 1 0
example.com/m/a/b/y.go:1.1,2.2 10 0
example.com/m/a/x.go:1.1,2.2 3 1
example.com/m/a/x.go:1.1,2.2 3 0
`))
	if err != nil || found["example.com/m/a"] != (coverage{4, 3}) || found["example.com/m/a/b"] != (coverage{10, 0}) || found["example.com/m/a"].percent() != 75 {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := readProfile(strings.NewReader("mode: set\nnot a block\n")); err == nil {
		t.Error("a profile that is none was read")
	}
	path := filepath.Join(t.TempDir(), "profile")
	if err := os.WriteFile(path, []byte("mode: set\ngithub.com/carddata/carddata-go/bins/x.go:1.1,2.2 1 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), new(bytes.Buffer), []string{"coverage", path, "90", "bins"}); err != nil {
		t.Error(err)
	}
	// A package that nothing ran is not covered.
	if err := run(t.Context(), new(bytes.Buffer), []string{"coverage", path, "90", "bins", "refunds"}); err == nil || strings.Contains(err.Error(), "bins") {
		t.Error(err)
	}
}

func TestFuzzFunctions(t *testing.T) {
	code := `package x
func FuzzOne(f *testing.F) {}
func FuzzTwo(
	f *testing.F,
) {}
// func FuzzComment(f *testing.F) {}
const text = "\nfunc FuzzText(f *testing.F) {}"
func Fuzzy() {}
func FuzzHelper(t *testing.T) {}
func (x) FuzzMethod(f *testing.F) {}
`
	names, err := fuzzFunctions("x_test.go", code)
	if err != nil || !slices.Equal(names, []string{"FuzzOne", "FuzzTwo"}) {
		t.Errorf("%q, %v", names, err)
	}
	t.Chdir("../conformance/origin")
	found, err := fuzzPackages(t.Context())
	if err != nil || len(found) != 1 || found[0].path != "github.com/carddata/carddata-go/internal/conformance/origin" || !slices.Equal(found[0].targets, []string{"FuzzHeaderValue"}) {
		t.Errorf("%v, %v", found, err)
	}
}

func TestReadme(t *testing.T) {
	for _, test := range []struct{ name, text, fails string }{
		{"sound", "# P\n## Try it now\nText.\n```sh\n# first\nprintf 'one\\ntwo\\n'\ntrue\n```\n```text\none\ntwo\n```\n", ""},
		{"other output", "## Try it now\n```sh\nprintf 'one\\ntwo\\n'\ntrue\n```\none\n", "missing: two"},
		{"no output", "## Try it now\n```sh\necho one\ntrue\n```\none\n", "next to nothing"},
		{"a failing test", "## Try it now\n```sh\nprintf 'one\\ntwo\\n'\nfalse\n```\none\ntwo\n", "exit status 1"},
		{"a failing command", "## Try it now\n```sh\nfalse\ntrue\n```\n", "exit status 1"},
		{"no commands", "## Try it now\n## Next\n```sh\ntrue\ntrue\n```\n", "0 commands"},
		{"no heading", "```sh\ntrue\ntrue\n```\n", "0 commands"},
	} {
		path := filepath.Join(t.TempDir(), "README.md")
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := run(t.Context(), new(bytes.Buffer), []string{"readme", path})
		if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%s: %v, want %q", test.name, err, test.fails)
		}
	}
}

// TestComponents holds the promise that the library links three modules and no
// more.
func TestComponents(t *testing.T) {
	t.Chdir("../..")
	var out bytes.Buffer
	if err := run(t.Context(), &out, []string{"components"}); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for line := range strings.Lines(out.String()) {
		fields := strings.Fields(line)
		if len(fields) != 3 || !strings.HasPrefix(fields[2], "h1:") {
			t.Errorf("no version and checksum: %s", line)
		}
		paths = append(paths, fields[0])
	}
	if want := []string{"github.com/hashicorp/go-cleanhttp", "github.com/hashicorp/go-retryablehttp", "golang.org/x/time"}; !slices.Equal(paths, want) {
		t.Errorf("linked are %q, want %q", paths, want)
	}
}

func TestReach(t *testing.T) {
	for status, reached := range map[int]bool{200: true, 403: false, 500: false} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		if err := reach(t.Context(), s.URL); (err == nil) != reached {
			t.Errorf("%d: %v", status, err)
		}
		s.Close()
		if err := reach(t.Context(), s.URL); err == nil {
			t.Error("a database that is gone was reached")
		}
	}
}
