package surface_test

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit"
)

const library = "github.com/carddata/carddata-go"

// TestImported imports what the README of a nested module says to import, as a user does: from a
// proxy of modules that has the release that their go.mod requires.
func TestImported(t *testing.T) {
	testkit.Long(t)
	proxy, cache := t.TempDir(), strings.TrimSpace(command(t, ".", nil, "go", "env", "GOMODCACHE"))
	for _, folder := range []string{"", "refunds/outbox", "examples/engines/telemetry"} {
		release(t, proxy, folder)
	}
	environment := []string{
		"GOPROXY=" + fileURL(proxy) + "," + fileURL(filepath.Join(cache, "cache", "download")) + "," + strings.TrimSpace(command(t, ".", nil, "go", "env", "GOPROXY")),
		"GOMODCACHE=" + t.TempDir(), "GOFLAGS=-modcacherw -mod=mod", "GOSUMDB=off", "GONOPROXY=none", "GOWORK=off",
	}
	for name, test := range map[string]struct{ imports, uses, check string }{
		"telemetry": {library + "/examples/engines/telemetry/instrument", "instrument.Buckets", "build"},
		"outbox":    {library + "/refunds/outbox", "outbox.OpenSQLite", "list"}, // its engine takes long to compile
	} {
		module := filepath.Join(t.TempDir(), name)
		program := fmt.Sprintf("package main\n\nimport %q\n\nvar _ = %s\n\nfunc main() {}\n", test.imports, test.uses)
		if err := errors.Join(os.Mkdir(module, 0o700), os.WriteFile(filepath.Join(module, "main.go"), []byte(program), 0o600)); err != nil {
			t.Fatal(err)
		}
		command(t, module, environment, "go", "mod", "init", "example.com/"+name)
		command(t, module, environment, "go", "get", test.imports)
		args := []string{"build", "-o", os.DevNull, "."}
		if test.check == "list" {
			args = []string{"list", "-deps", "."}
		}
		command(t, module, environment, "go", args...)
	}
}

func fileURL(path string) string { return "file://" + filepath.ToSlash(path) }

func command(t *testing.T, dir string, environment []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environment...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, stderr.String())
	}
	return string(out)
}

// release puts the module in a folder of the repository into a proxy, as version v0.1.0.
func release(t *testing.T, proxy, folder string) {
	t.Helper()
	const version = "v0.1.0"
	path := strings.TrimSuffix(library+"/"+folder, "/")
	dir := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	mod := read(t, filepath.Join(folder, "go.mod"))
	err := errors.Join(os.MkdirAll(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "list"), []byte(version+"\n"), 0o600),
		os.WriteFile(filepath.Join(dir, version+".info"), []byte(`{"Version":"`+version+`","Time":"2026-01-01T00:00:00Z"}`), 0o600),
		os.WriteFile(filepath.Join(dir, version+".mod"), []byte(mod), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	archive := zip.NewWriter(file)
	top := filepath.Join(root, folder)
	err = filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == top {
			return err
		}
		if d.IsDir() {
			if _, nested := os.Stat(filepath.Join(name, "go.mod")); nested == nil || strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		inside, err := filepath.Rel(top, name)
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		w, err := archive.Create(path + "@" + version + "/" + filepath.ToSlash(inside))
		if err == nil {
			_, err = w.Write(content)
		}
		return err
	})
	if err := errors.Join(err, archive.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
}
