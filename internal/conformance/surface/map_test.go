package surface_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMaps checks that the tests and packages which internal/README.md and
// SECURITY.md name are there.
func TestMaps(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	var tests strings.Builder
	for _, pattern := range []string{"*/*_test.go", "*/*/*_test.go", "*/*/*/*_test.go"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(code)
		}
	}
	for _, path := range []string{"internal/README.md", ".github/SECURITY.md"} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile("`(Test[A-Z]\\w*)`").FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(tests.String(), "\nfunc "+name[1]+"(t *testing.T)") {
				t.Errorf("%s: there is no test %s", path, name[1])
			}
		}
		for _, dir := range regexp.MustCompile(`\./(internal/[a-z/]+|examples/[a-z]+)|(?:go -C )((?:internal|examples)/[a-z]+)`).FindAllStringSubmatch(string(text), -1) {
			if info, err := os.Stat(filepath.Join(root, dir[1]+dir[2])); err != nil || !info.IsDir() {
				t.Errorf("%s: there is no package %s", path, dir[1]+dir[2])
			}
		}
		for _, link := range regexp.MustCompile(`\]\(([a-z/]+)\)`).FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(path), link[1])); err != nil {
				t.Errorf("%s: there is no %s", path, link[1])
			}
		}
	}
}
