package surface_test

import (
	"go/format"
	"os"
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

// TestReadmeCode parses every piece of Go in the README. TestCopiedOut builds the programs.
func TestReadmeCode(t *testing.T) {
	for i, code := range goBlocks(t) {
		formatted, err := format.Source([]byte(code))
		if err != nil || string(formatted) != code {
			t.Errorf("block %d is not as gofmt writes it: %v\n%s", i+1, err, code)
		}
	}
}

// goBlocks returns the README's blocks fenced as go.
func goBlocks(t *testing.T) (blocks []string) {
	t.Helper()
	parts := strings.Split("\n"+readme(t), "\n```")
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
