package surface_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var root = filepath.Join("..", "..", "..", "..")

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	declaredName  = regexp.MustCompile(`(?m)^(?:func|var|type|const|\t) ?([A-Z]\w*)|^func \([^)]*\) ([A-Z]\w*)`)
	mentionedName = regexp.MustCompile(`(?:^|[^.\w])(?:(bins|refunds|updater)\.([A-Z]\w*)|((?:With|Err)[A-Z]\w*))`)
)

// TestReadmeNames proves that the README mentions no name that the packages do
// not export.
func TestReadmeNames(t *testing.T) {
	exports := map[string][]string{}
	var anywhere []string
	for _, pkg := range packages {
		files, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range declaredName.FindAllStringSubmatch(string(source), -1) {
				exports[pkg] = append(exports[pkg], found[1]+found[2])
			}
		}
		anywhere = append(anywhere, exports[pkg]...)
	}
	for _, found := range mentionedName.FindAllStringSubmatch(readme(t), -1) {
		if found[1] != "" && !slices.Contains(exports[found[1]], found[2]) || found[3] != "" && !slices.Contains(anywhere, found[3]) {
			t.Errorf("the README mentions %s, which there is not", found[0])
		}
	}
}

// TestReadmeCode builds every complete program of the README and parses every
// piece of Go, so that what a newcomer pastes works.
func TestReadmeCode(t *testing.T) {
	programs := 0
	for i, code := range goBlocks(t, readme(t)) {
		if err := checkFormat(code); err != nil {
			t.Errorf("block %d: %v\n%s", i+1, err, code)
		}
		if !strings.HasPrefix(code, "package main\n") {
			continue
		}
		programs++
		if err := buildProgram(t, code); err != nil {
			t.Errorf("block %d: %v", i+1, err)
		}
	}
	if programs == 0 {
		t.Error("the README holds no program")
	}
}

// goBlocks returns the blocks fenced as go.
func goBlocks(t *testing.T, text string) (blocks []string) {
	t.Helper()
	parts := strings.Split("\n"+text, "\n```")
	if len(parts)%2 == 0 {
		t.Fatal("a block of the README has no end")
	}
	for i := 1; i < len(parts); i += 2 {
		if code, ok := strings.CutPrefix(parts[i], "go\n"); ok {
			blocks = append(blocks, code+"\n")
		}
	}
	return blocks
}

// checkFormat parses a file, declarations, or statements.
func checkFormat(code string) error {
	formatted, err := format.Source([]byte(code))
	if err == nil && !bytes.Equal(formatted, []byte(code)) {
		err = errors.New("not as gofmt writes it")
	}
	return err
}

// buildProgram lays the program over a directory that does not exist, so that
// it builds inside the module without a file being written there.
func buildProgram(t *testing.T, code string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	dir := t.TempDir()
	source, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	replace := map[string]map[string]string{
		"Replace": {filepath.Join(root, "internal", "readme", "main.go"): source},
	}
	table, err := json.Marshal(replace)
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(source, []byte(code), 0o600), os.WriteFile(overlay, table, 0o600)); err != nil {
		return err
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-overlay", overlay,
		"-o", filepath.Join(dir, "program.exe"), "./internal/readme")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}
