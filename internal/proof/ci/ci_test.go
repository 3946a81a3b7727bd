// Package ci holds what must be true of the repository as a whole.
package ci

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

// output runs a command at the top of the repository.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed", name)
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Stderr = root, t.Output()
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	return string(text)
}

// TestComponents: a program that imports the library links three modules beside it,
// each with a checksum.
func TestComponents(t *testing.T) {
	listing := output(t, "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Sum}}{{end}}{{end}}", "./bins", "./refunds", "./updater")
	lines := strings.Fields(strings.ReplaceAll(listing, " ", "="))
	slices.Sort(lines)
	var paths []string
	for _, line := range slices.Compact(lines) {
		path, sum, _ := strings.Cut(line, "=")
		if !strings.HasPrefix(sum, "h1:") {
			t.Errorf("no checksum: %s", line)
		}
		paths = append(paths, path)
	}
	want := []string{"github.com/hashicorp/go-cleanhttp", "github.com/hashicorp/go-retryablehttp", "golang.org/x/time"}
	if !slices.Equal(paths, want) {
		t.Errorf("linked are %q, want %q", paths, want)
	}
}

// TestImportsRunDown: what ships imports nothing that proves, the service packages do
// not import each other, and nothing below imports a program.
func TestImportsRunDown(t *testing.T) {
	const module = "github.com/carddata/carddata-go/"
	floor := func(path string) (floor int, room string) {
		path = strings.TrimPrefix(path, module)
		first, rest, _ := strings.Cut(path, "/")
		second, _, _ := strings.Cut(rest, "/")
		switch {
		case first == "examples":
			return 4, first
		case path == "internal/proof" || first == "internal" && second == "proof":
			return 3, "internal/proof"
		case first == "internal" || path+"/" == module:
			return 0, path
		case second == "internal": // of the service alone, as the compiler sees to
			return 0, path
		case second != "":
			return 2, "for tests" // the fakes share what a test scripts and sees
		default:
			return 1, first
		}
	}
	listing := output(t, "go", "list", "-f", "{{.ImportPath}}{{range .Imports}} {{.}}{{end}}", "./...")
	for line := range strings.Lines(listing) {
		paths := strings.Fields(line)
		from, fromRoom := floor(paths[0])
		for _, path := range paths[1:] {
			if !strings.HasPrefix(path, module) {
				continue
			}
			if to, room := floor(path); to > from || to == from && to > 0 && room != fromRoom {
				t.Errorf("%s imports %s", strings.TrimPrefix(paths[0], module), strings.TrimPrefix(path, module))
			}
		}
	}
}

// TestImportsInside: below transport, each room imports only the rooms under it, and only the
// services import transport.
func TestImportsInside(t *testing.T) {
	const rooms = "github.com/carddata/carddata-go/internal/"
	under := map[string][]string{
		"mask":      nil,
		"await":     nil,
		"fault":     {"mask"},
		"auth":      {"fault", "mask"},
		"limit":     {"await", "fault"},
		"wire":      {"fault"},
		"flow":      nil,
		"bulk":      {"await", "fault"},
		"transport": {"auth", "await", "fault", "flow", "limit", "mask", "wire"},
	}
	for room, allowed := range under {
		for path := range strings.FieldsSeq(output(t, "go", "list", "-f", "{{range .Imports}}{{.}} {{end}}", "./internal/"+room)) {
			if other, inside := strings.CutPrefix(path, rooms); inside && !slices.Contains(allowed, other) {
				t.Errorf("%s imports %s", room, other)
			}
		}
	}
	listing := output(t, "go", "list", "-f", "{{.ImportPath}}{{range .Imports}} {{.}}{{end}}", "./...")
	for line := range strings.Lines(listing) {
		paths := strings.Fields(line)
		importer := strings.TrimPrefix(paths[0], "github.com/carddata/carddata-go/")
		isService := importer == "bins" || importer == "refunds" || importer == "updater"
		if slices.Contains(paths[1:], rooms+"transport") && !isService {
			t.Errorf("%s imports transport", importer)
		}
	}
}

// TestTrackedFiles: nothing large is in the repository, and so no program.
func TestTrackedFiles(t *testing.T) {
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("not a checkout")
	}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	// The clone may belong to another user.
	listing := output(t, "git", "-c", "safe.directory="+top, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for name := range strings.SplitSeq(strings.TrimSuffix(listing, "\x00"), "\x00") {
		if info, err := os.Stat(filepath.Join(root, name)); err == nil && info.Size() > 1_000_000 {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
	}
}
